// Program.java - what a Java server does to its process: threads, locks, collections of garbage,
// code that is compiled while it runs and relies on SIGSEGV (null checks, safepoints, deep recursion),
// mapped files, buffers outside of the heap, zip, child processes. What it prints depends on each step.
import java.io.*;
import java.nio.*;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.stream.*;
import java.util.zip.*;

public class Program {
    static String name;

    static String digest(byte[] b) throws Exception {
        return String.format("%064x", new java.math.BigInteger(1, MessageDigest.getInstance("SHA-256").digest(b))).substring(0, 16);
    }

    static long garbage(int seed, int rounds) {
        List<byte[]> kept = new ArrayList<>();
        Map<String, Integer> names = new HashMap<>();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            kept.add(new byte[(i * 31 + seed) % 5000]);
            if (kept.size() > 200)
                kept.subList(0, 150).clear();
            names.merge("n" + (i * 7919 + seed) % 997, 1, Integer::sum);
            sum += kept.get(kept.size() - 1).length + names.size();
        }
        return sum;
    }

    // Compiled, these have no check of their own: the fault is caught and becomes the exception.
    static int nulls(int rounds) {
        int caught = 0;
        for (int i = 0; i < rounds; i++) {
            String s = i % 1000 == 999 ? name : "abc";
            try {
                caught += s.length() > 3 ? 1 : 0;
            } catch (NullPointerException e) {
                caught += 10;
            }
        }
        return caught;
    }

    static int deep(int n) {
        return n + deep(n + 1);
    }

    static boolean overflows() {
        try {
            return deep(0) < 0;
        } catch (StackOverflowError e) {
            return true;
        }
    }

    public static void main(String[] args) throws Exception {
        Path dir = Path.of(args[0]);
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<Long>> all = new ArrayList<>();
        for (int i = 0; i < 16; i++) {
            int seed = i;
            all.add(pool.submit(() -> garbage(seed, 60000)));
        }
        for (Future<Long> f : all)
            System.out.print(f.get() + " ");
        pool.shutdown();
        System.out.println(pool.awaitTermination(60, TimeUnit.SECONDS));

        System.out.println("nulls " + nulls(5_000_000) + " overflow " + overflows());
        boolean[] said = new boolean[20];
        Thread[] small = new Thread[said.length];
        for (int i = 0; i < small.length; i++) {
            int k = i;
            (small[i] = new Thread(null, () -> said[k] = overflows(), "small", 200 << 10)).start();
        }
        for (Thread t : small)
            t.join();
        System.out.println("overflow in threads " + Arrays.toString(said));

        System.out.println("parallel " + IntStream.range(0, 2_000_000).parallel().mapToLong(i -> (i * 7919L) % 1009).sum());
        AtomicLong count = new AtomicLong();
        for (int i = 0; i < 2000; i++) {
            Thread t = new Thread(count::incrementAndGet);
            t.start();
            if (i % 10 == 9)
                t.join();
        }
        while (count.get() < 2000)
            Thread.sleep(1);
        System.out.println("short threads " + count);

        Path file = dir.resolve("mapped");
        try (FileChannel c = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            MappedByteBuffer m = c.map(FileChannel.MapMode.READ_WRITE, 0, 1 << 20);
            for (int i = 0; i < m.capacity() / 4; i++)
                m.putInt(i * 4, i * 2654435 ^ 77);
            m.force();
        }
        System.out.println("mapped " + digest(Files.readAllBytes(file)));
        long direct = 0;
        for (int i = 0; i < 300; i++) {
            ByteBuffer b = ByteBuffer.allocateDirect(100_000 + i);
            b.put(i, (byte) i);
            direct += b.get(i) + b.capacity();
        }
        System.out.println("direct " + direct);
        try {
            List<ByteBuffer> kept = new ArrayList<>();
            for (;;)
                kept.add(ByteBuffer.allocateDirect(8 << 20));
        } catch (OutOfMemoryError e) {
            System.out.println("direct memory: OutOfMemoryError");
        }
        try {
            List<long[]> kept = new ArrayList<>();
            for (;;)
                kept.add(new long[1 << 20]);
        } catch (OutOfMemoryError e) {
            System.out.println("heap: OutOfMemoryError");
        }

        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (GZIPOutputStream z = new GZIPOutputStream(packed)) {
            for (int i = 0; i < 100_000; i++)
                z.write((i * 31) ^ (i >> 3));
        }
        byte[] back = new GZIPInputStream(new ByteArrayInputStream(packed.toByteArray())).readAllBytes();
        System.out.println("zip " + digest(packed.toByteArray()) + " " + digest(back));

        for (String[] command : new String[][] {{"/bin/sh", "-c", "read x; echo \"child says $x\"; exit 5"}, {"/bin/sh", "-c", "kill -9 $$"}}) {
            Process p = new ProcessBuilder(command).redirectErrorStream(true).start();
            try (Writer w = new OutputStreamWriter(p.getOutputStream())) {
                w.write("hello\n");
            } catch (IOException e) {
                // it may be gone already
            }
            System.out.print(new String(p.getInputStream().readAllBytes()));
            System.out.println("status " + p.waitFor());
        }
        try {
            new ProcessBuilder("/does/not/exist").start();
        } catch (IOException e) {
            System.out.println(e.getMessage());
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook " + garbage(1, 100))));
        System.exit(7);
    }
}
