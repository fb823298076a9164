#!/bin/sh
# The fonts of the pages, made again: sh derive/show/fonts/make.sh
# Of TeX Gyre Pagella what formulas are made of: in the math font with its MATH table and the taller
# forms of brackets, sums and roots; in the italic one the letters of names.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv subset
subset/bin/pip install --quiet fonttools==4.68.0 brotli==1.2.1
apt-get download fonts-texgyre fonts-texgyre-math
for package in *.deb; do dpkg -x "$package" .; done
gyre=usr/share/texmf/fonts/opentype/public
letters=U+20-7E,U+A0,U+B7,U+393,U+394,U+398,U+39B,U+39E,U+3A0,U+3A3,U+3A6,U+3A8,U+3A9,U+3B1-3C9
signs=U+AC,U+B1,U+D7,U+2009,U+2026,U+2032,U+2061-2063,U+2192,U+2208,U+2211,U+2212,U+221A,U+221E
signs=$signs,U+2227,U+2228,U+2260,U+2264,U+2265,U+22C5
slanted=U+210E,U+1D434-1D467,U+1D6E2-1D714

subset() { # font, characters, name
    subset/bin/pyftsubset "$1" --unicodes="$2" --flavor=woff2 --layout-features= --no-hinting \
        --name-IDs=0,1,2,13,14 --output-file="$here/$3.woff2"
}
subset $gyre/tex-gyre-math/texgyrepagella-math.otf "$letters,$signs,$slanted" math
subset $gyre/tex-gyre/texgyrepagella-italic.otf "$letters,U+C0-FF" names
cp usr/share/texmf/doc/fonts/tex-gyre-math/GUST-FONT-LICENSE.txt "$here"
