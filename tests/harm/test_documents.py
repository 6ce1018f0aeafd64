#!/usr/bin/env python3
"""Programs that draw, typeset and convert: the same documents and pictures, to the bit where the
format bears no date, else what another program draws or reads from them."""

import os
import sys

import harness
from harness import check, need, output, version

GHOSTSCRIPT = r"""
set -e
cd "$TMPDIR"
cat >page.ps <<'END'
%!PS
/Times-Roman findfont 12 scalefont setfont
/fib { dup 2 lt { } { dup 1 sub fib exch 2 sub fib add } ifelse } def
1 1 14 { /page exch def
	0 1 900 { /i exch def
		i 37 mod 16 mul i 7919 mul page mul 1009 mod 0.7 mul moveto
		i 255 mod 255 div page 14 div 0.5 setrgbcolor
		i 5 mod 0 eq { i 10 string cvs show } { i page mul 60 mod 10 add i 97 mod rlineto stroke } ifelse
	} for
	gsave 300 400 translate page 20 mul rotate << /ShadingType 2 /ColorSpace /DeviceRGB /Coords [0 0 100 100]
		/Function << /FunctionType 2 /Domain [0 1] /C0 [1 0 0] /C1 [0 0 1] /N 1.5 >> /Extend [false false] >> shfill grestore
	/d 3000 dict def 0 1 2999 { dup 20 string cvs cvn exch d 3 1 roll put } for
	19 fib ==
	showpage
} for
END
gs -q -dNOPAUSE -dBATCH -sDEVICE=ppmraw -r72 -dTextAlphaBits=4 -dGraphicsAlphaBits=4 -sOutputFile=page%02d.ppm page.ps
gs -q -dNOPAUSE -dBATCH -sDEVICE=pdfwrite -sOutputFile=page.pdf page.ps >/dev/null
gs -q -dNOPAUSE -dBATCH -sDEVICE=pnggray -r50 -dNumRenderingThreads=3 -dBandBufferSpace=500000 -sOutputFile=again%02d.png page.pdf
gs -q -dNOPAUSE -dBATCH -sDEVICE=txtwrite -sOutputFile=text page.pdf
sha256sum page*.ppm again*.png text
gs -q -dNOPAUSE -dBATCH -sDEVICE=ppmraw -sOutputFile=x.ppm -c "1 array 5 get" 2>&1 | head -2
gs -q -dNOPAUSE -dBATCH -sDEVICE=ppmraw -sOutputFile=x.ppm nothing.ps || exit 9
"""
# Of both programs of this family; "run" is the one or the other.
PICTURES = r"""
set -e
cd "$TMPDIR"
run convert -size 900x700 gradient:red-blue a.ppm
run convert a.ppm -swirl 120 -wave 9x80 -blur 0x3 b.ppm
run convert b.ppm -resize 50% -rotate 30 -sharpen 0x2 -modulate 110,80 c.png
run convert b.ppm -colors 32 +dither d.gif
run convert a.ppm b.ppm -resize 400x300! -append -quality 85 e.jpg
run composite -compose difference c.png a.ppm f.ppm
run convert c.png -crop 100x100 +repage +adjoin tile%02d.ppm
run convert tile0*.ppm -edge 1 -negate g.tiff
run identify -format '%w %h %m\n' b.ppm d.gif e.jpg g.tiff
run convert d.gif d.ppm
run convert e.jpg -equalize -median 3 e.ppm
run convert g.tiff +adjoin g%02d.ppm
run compare -metric RMSE a.ppm b.ppm null: 2>&1 || true
sha256sum *.ppm
run convert c.png c.ppm; sha256sum c.ppm
run convert nothing.png x.ppm || exit 9
"""
GNUPLOT = r"""
set -e
cd "$TMPDIR"
cat >plot <<'END'
set samples 2000; set isosamples 160
set print "numbers"
f(x) = a * sin(b * x) + c
a = 1; b = 1.1; c = 0.1
set table "data"; plot [0:20] 3 * sin(1.2 * x) + 0.5; unset table
set fit quiet logfile "/dev/null"
fit f(x) "data" using 1:2 via a, b, c
print sprintf("%.4f %.4f %.4f", a, b, c)
stats "data" using 2 nooutput; print sprintf("%.5f %.5f", STATS_mean, STATS_stddev)
fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
print fib(25)
array A[5000]; do for [i = 1:5000] { A[i] = sprintf("%d", i * 7919 % 1009) }
n = 0; do for [i = 1:5000] { n = n + strlen(A[i]) + int(A[i]) }; print n
print system("echo child")
set terminal svg size 800,600
set output "a.svg"; plot for [k = 1:12] sin(x * k) / k title sprintf("sine %d", k), "data" smooth bezier with lines
set terminal postscript color
set output "b.ps"; set hidden3d; splot [-3:3] [-3:3] sin(x * x + y * y) with lines, cos(x) * y
set terminal dumb 120 40
set output "c.txt"; set contour; unset surface; plot "data" every 20 with points
set terminal svg; set output "d.svg"; set pm3d map; set surface; set palette rgb 33,13,10; splot [-2:2] [-2:2] exp(-x * x - y * y)
END
gnuplot plot
cat numbers
grep -v -e CreationDate -e Creator b.ps | sha256sum
sha256sum data a.svg c.txt d.svg
echo 'plot "nothing" using 7' >wrong
gnuplot wrong || exit 9
"""
PANDOC = r"""
set -e
cd "$TMPDIR"
for i in $(seq 1 150); do
	printf '# Chapter %d\n\nText with *emphasis*, `code` and [a link](http://example.org/%d)^[A note %d.].\n\n' $i $i $i
	printf '| a | b |\n|---|--:|\n| %d | x%d |\n\n' $i $i
	printf '1. one\n2. two\n    - three $x^{%d}$\n\n~~~ {.c}\nint f%d(int x) { return x + "%d"[0]; }\n~~~\n\n' $i $i $i
done >in.md
export SOURCE_DATE_EPOCH=0
pandoc -s --toc --number-sections --metadata title=T in.md -o a.html
pandoc -s in.md -o a.tex
pandoc in.md -t json -o a.json
pandoc -f html -t markdown a.html -o b.md
pandoc -s in.md -o a.docx
pandoc a.docx -t rst -o c.rst
pandoc in.md -o a.epub --metadata title=T
cat >upper.lua <<'END'
function Str(s) s.text = s.text:upper(); return s end
END
pandoc --lua-filter upper.lua in.md -t plain -o d.txt
sha256sum a.html a.tex a.json b.md c.rst d.txt
test -s a.epub
pandoc nothing.md || exit 9
"""
LATEX = r"""
set -e
cd "$TMPDIR"
{
	printf '\\documentclass{article}\n\\usepackage{amsmath}\n\\usepackage{hyperref}\n\\begin{document}\n\\tableofcontents\n'
	for i in $(seq 1 90); do
		printf '\\section{Number %d}\\label{s%d}\nAs in section~\\ref{s%d} on page~\\pageref{s%d}.\n' $i $i $((i % 89 + 1)) $((i % 89 + 1))
		printf '\\begin{align} \\int_0^{%d} \\frac{x^{%d}}{1 + \\sqrt{x}}\\,dx &= \\sum_{k=0}^\\infty a_k \\end{align}\n' $i $i
		printf '\\begin{tabular}{|l|r|}\\hline a & %d \\\\\\hline b & \\textit{%d} \\\\\\hline\\end{tabular}\n\n' $i $((i * 7919))
		printf 'Some words that fill a paragraph, \\emph{again} and again, until a line must be broken somewhere. %.0s' 1 2 3 4 5 6 7 8
		printf '\n'
	done
	printf '\\newcount\\n \\n=0 \\loop\\advance\\n by 1 \\expandafter\\def\\csname m\\number\\n\\endcsname{x}\\ifnum\\n<20000 \\repeat\n\\end{document}\n'
} >paper.tex
export SOURCE_DATE_EPOCH=0 FORCE_SOURCE_DATE=1
for run in 1 2 3; do pdflatex -interaction=batchmode paper.tex >/dev/null; done
sed -i -e 's/^.*\.fmt.*$//' paper.log
sha256sum paper.pdf paper.aux paper.toc paper.out
grep -c Overfull paper.log || true
latex -interaction=batchmode paper.tex >/dev/null
dvips -q paper.dvi -o paper.ps
grep -v -i date paper.ps | sha256sum
printf '\\documentclass{article}\\begin{document}\\nothing\\end{document}' >wrong.tex
pdflatex -halt-on-error -interaction=batchmode wrong.tex >/dev/null || exit 9
"""
OFFICE = r"""
set -e
cd "$TMPDIR"
{
	echo '<html><body><h1>Title</h1>'
	for i in $(seq 1 120); do
		echo "<h2>Part $i</h2><p>Words <b>bold $i</b> and <i>italic</i>, that fill a line and go on to the next one.</p>"
		echo "<table border=1><tr><td>$i</td><td>$((i * 7919 % 1009))</td></tr></table><ul><li>one<li>two</ul>"
	done
	echo '</body></html>'
} >in.html
run() { soffice -env:UserInstallation=file://"$TMPDIR"/profile --headless --norestore "$@" >said 2>&1; }
run --writer --convert-to odt in.html; test -s in.odt
run --convert-to docx in.odt; test -s in.docx
run --convert-to txt:Text in.docx; sha256sum in.txt
run --convert-to pdf in.odt; test -s in.pdf
gs -q -dNOPAUSE -dBATCH -sDEVICE=ppmraw -r40 -sOutputFile=page%02d.ppm in.pdf
sha256sum page*.ppm | sha256sum
ls page*.ppm | wc -l
exit 9
"""


def script(job, programs, name, version_of, what, text, least, processes=2, prelude="", env=None):
    """Runs a shell script, whose last command fails on purpose; what it prints is compared."""
    need("bash", *programs)
    job.about("%s %s" % (name, version(*version_of)), what)
    got = job.both(lambda side: output(side, side.run([need("bash"), "-c", prelude + text],
                                                      env=env)))
    check(got[0] == "status 9", "it ends with %s" % (got,))
    found = job.preload.traces(least=least, processes=processes)
    return "%d traces, %d events" % (len(found), sum(x["events"] for x in found))


def picture_case(job, programs, name, asked, prelude):
    return script(job, programs, name, asked, "filters, formats, differences: pictures to the bit",
                  PICTURES, 100, 10, prelude,
                  env={"OMP_NUM_THREADS": "2"})


CASES = {
    "ghostscript": lambda job: script(
        job, ["gs"], "Ghostscript", (["gs", "--version"], r"([\d.]+)"),
        "PostScript to pictures, to PDF, and that to pictures by threads and to text",
        GHOSTSCRIPT, 10000, 4),
    "imagemagick": lambda job: picture_case(
        job, ["convert", "identify"], "ImageMagick",
        (["convert", "--version"], r"ImageMagick ([\d.-]+)"), 'run() { "$@"; }\n'),
    "graphicsmagick": lambda job: picture_case(
        job, ["gm"], "GraphicsMagick", (["gm", "version"], r"GraphicsMagick ([\d.]+)"),
        'run() { gm "$@"; }\n'),
    "gnuplot": lambda job: script(
        job, ["gnuplot"], "gnuplot", (["gnuplot", "--version"], r"gnuplot ([\d.]+)"),
        "a fit, arrays, plots in four formats, to the bit", GNUPLOT, 5000, 2),
    "pandoc": lambda job: script(
        job, ["pandoc"], "pandoc", (["pandoc", "--version"], r"pandoc ([\d.]+)"),
        "between eight formats, a filter in Lua", PANDOC, 100, 5),
    "latex": lambda job: script(
        job, ["pdflatex", "dvips"], "pdfTeX", (["pdftex", "--version"], r"(3\.[\d.-]+)"),
        "LaTeX with references: PDF, DVI, PostScript, to the bit", LATEX, 1000, 4),
    "libreoffice": lambda job: script(
        job, ["soffice", "gs"], "LibreOffice", (["soffice", "--version"], r"LibreOffice ([\d.]+)"),
        "HTML to ODT, DOCX, PDF and text, without a display",
        OFFICE, 100000, 5),
}

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
