// program.js - a Node.js program that uses what a server does: worker threads that share memory and
// pass buffers, zlib and crypto in the thread pool, child processes, files, streams, sockets,
// WebAssembly, and enough garbage for many collections. What it prints depends on every step.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { createHash, pbkdf2, generateKeyPairSync, sign, verify } = require('crypto');
const { execFile, fork, spawn, spawnSync } = require('child_process');
const { pipeline } = require('stream/promises');
const { promisify } = require('util');
const http = require('http');
const fs = require('fs');
const path = require('path');
const zlib = require('zlib');

const digest = (x) => createHash('sha256').update(x).digest('hex').slice(0, 16);

function noise(seed, n) {
  const b = Buffer.allocUnsafe(n);
  for (let i = 0; i < n; i++) {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    b[i] = (seed >>> 16) % 64;
  }
  return b;
}

function garbage(rounds) {
  let kept = [];
  let sum = 0;
  for (let i = 0; i < rounds; i++) {
    const o = { id: i, tags: Array.from({ length: 20 }, (_, k) => 't' + ((i * k) % 97)), nested: { text: 'x'.repeat(i % 300) } };
    const back = JSON.parse(JSON.stringify(o));
    kept.push(back, Buffer.alloc(i % 5000, i % 256));
    if (kept.length > 400) kept = kept.slice(300);
    sum = (sum + back.tags.length * back.nested.text.length + (back.id % 7)) >>> 0;
  }
  return sum;
}

async function worker() {
  const { id, shared } = workerData;
  const counters = new Int32Array(shared);
  for (let i = 0; i < 20000; i++) Atomics.add(counters, 0, 1);
  const input = noise(id, 200000);
  const packed = zlib.gzipSync(input, { level: 6 });
  const sum = garbage(3000);
  const copy = new Uint8Array(packed);
  parentPort.postMessage({ id, sum, packed: copy, hash: digest(zlib.gunzipSync(packed)) }, [copy.buffer]);
}

function startWorker(id, shared) {
  return new Promise((resolve, reject) => {
    const w = new Worker(__filename, { workerData: { id, shared } });
    let said;
    w.on('message', (m) => { said = `${m.id} ${m.sum} ${digest(m.packed)} ${m.hash}`; });
    w.on('error', reject);
    w.on('exit', (code) => resolve(`${said} exit ${code}`));
  });
}

async function workers() {
  const shared = new SharedArrayBuffer(4);
  const said = await Promise.all([1, 2, 3, 4].map((id) => startWorker(id, shared)));
  const killed = await new Promise((resolve) => {
    const w = new Worker('for (;;) new Array(100).fill({});', { eval: true });
    w.on('online', () => setTimeout(() => w.terminate().then((code) => resolve(`terminated ${code}`)), 50));
  });
  const failed = await new Promise((resolve) => {
    new Worker('throw new RangeError("on purpose")', { eval: true }).on('error', (e) => resolve(`${e.name}: ${e.message}`));
  });
  const limited = await new Promise((resolve) => {
    const w = new Worker('const a = []; for (;;) a.push(new Array(1000).fill(1));',
      { eval: true, resourceLimits: { maxOldGenerationSizeMb: 16 } });
    w.on('error', (e) => resolve(e.code));
  });
  return [...said, new Int32Array(shared)[0], killed, failed, limited];
}

async function pool() {
  const input = noise(99, 500000);
  const jobs = [];
  for (let i = 0; i < 6; i++) {
    jobs.push(promisify(zlib.deflate)(input.subarray(i * 1000), { level: 1 + i }).then((x) => digest(x)));
    jobs.push(promisify(zlib.brotliCompress)(input.subarray(0, 50000 + i), { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } }).then((x) => digest(x)));
    jobs.push(promisify(pbkdf2)('secret' + i, 'salt', 2000, 32, 'sha512').then((x) => digest(x)));
  }
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return [...(await Promise.all(jobs)), verify(null, input, publicKey, sign(null, input, privateKey))];
}

async function children() {
  const said = [];
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', 'i=0; while [ $i -lt 20 ]; do echo line $i; i=$((i+1)); done | sort -r | head -3']);
  said.push(stdout);
  const r = spawnSync(process.execPath, ['-e', 'process.stdin.on("data", (d) => process.stdout.write(String(d.length))); process.exitCode = 7'], { input: noise(5, 70000) });
  said.push(r.status, String(r.stdout).length > 0, String(r.stderr));
  said.push(await new Promise((resolve) => {
    const c = fork(__filename, ['child'], { silent: true });
    let got = '';
    c.on('message', (m) => { got += m.sum; c.send('bye'); });
    c.on('exit', (code, signal) => resolve(`${got} ${code} ${signal}`));
  }));
  said.push(await new Promise((resolve) => {
    const c = spawn('/bin/sleep', ['100']);
    c.on('spawn', () => c.kill('SIGTERM'));
    c.on('exit', (code, signal) => resolve(`${code} ${signal}`));
  }));
  said.push(await new Promise((resolve) => spawn('/no/such/program').on('error', (e) => resolve(e.code))));
  return said;
}

async function files(top) {
  const a = path.join(top, 'a.bin'), b = path.join(top, 'b.gz'), c = path.join(top, 'c.bin');
  fs.writeFileSync(a, noise(7, 3000000));
  await pipeline(fs.createReadStream(a), zlib.createGzip(), fs.createWriteStream(b));
  await pipeline(fs.createReadStream(b), zlib.createGunzip(), fs.createWriteStream(c));
  return [digest(fs.readFileSync(b)), fs.readFileSync(a).equals(fs.readFileSync(c))];
}

async function sockets() {
  const server = http.createServer((req, res) => {
    const parts = [];
    req.on('data', (d) => parts.push(d));
    req.on('end', () => { res.setHeader('x-hash', digest(Buffer.concat(parts))); res.end(zlib.gzipSync(Buffer.concat(parts))); });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  const ask = (i) => new Promise((resolve, reject) => {
    const req = http.request({ port, host: '127.0.0.1', method: 'POST', path: '/' + i }, (res) => {
      const parts = [];
      res.on('data', (d) => parts.push(d));
      res.on('end', () => resolve(`${res.statusCode} ${res.headers['x-hash']} ${digest(Buffer.concat(parts))}`));
    });
    req.on('error', reject);
    req.end(noise(i, 1000 + i * 500));
  });
  const said = digest((await Promise.all(Array.from({ length: 60 }, (_, i) => ask(i)))).join());
  await new Promise((resolve) => server.close(resolve));
  return said;
}

async function wasm() {
  // (module (memory (export "m") 1) (func (export "grow") (param i32) (result i32) local.get 0 memory.grow))
  const code = Buffer.from('0061736d0100000001060160017f017f03020100050301000107' +
    '0c02016d02000467726f7700000a08010600200040000b', 'hex');
  const { instance } = await WebAssembly.instantiate(code);
  const before = instance.exports.grow(100);
  return [before, instance.exports.grow(1000), instance.exports.m.buffer.byteLength];
}

async function main() {
  const top = fs.mkdtempSync(path.join(process.env.TMPDIR || '/tmp', 'node-'));
  console.log(JSON.stringify({ garbage: garbage(20000) }));
  console.log(JSON.stringify({ workers: await workers() }));
  console.log(JSON.stringify({ pool: await pool() }));
  console.log(JSON.stringify({ children: await children() }));
  console.log(JSON.stringify({ files: await files(top) }));
  console.log(JSON.stringify({ sockets: await sockets() }));
  console.log(JSON.stringify({ wasm: await wasm() }));
  fs.rmSync(top, { recursive: true });
  process.exitCode = 3;
}

if (!isMainThread) {
  worker();
} else if (process.argv[2] === 'child') {
  process.send({ sum: garbage(1000) });
  process.on('message', () => process.exit(5));
} else {
  main();
}
