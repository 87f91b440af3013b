package terminal

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/term"
)

// Style is how a terminal shows a text: the code of a color or weight in an escape sequence (ECMA-48, SGR).
type Style string

// The styles. Their colors are those of the user's theme.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
)

// Paint returns a text in the style.
func (s Style) Paint(text string) string {
	if s == Plain {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// Colors reports whether a stream is a terminal that shows styles: not with NO_COLOR (https://no-color.org), not with
// TERM=dumb, and on Windows only in Windows Terminal, which needs no call to turn escape sequences on.
func Colors(stream any, env func(string) string) bool {
	return Is(stream) && env("NO_COLOR") == "" && env("TERM") != "dumb" &&
		(runtime.GOOS != "windows" || env("WT_SESSION") != "")
}

// Width returns the width of a terminal in cells: COLUMNS if that is a positive number, and otherwise the width that
// the terminal reports. Width returns 0 if the stream is no terminal, or reports no width.
func Width(stream any, env func(string) string) int {
	if !Is(stream) {
		return 0
	}
	if columns, err := strconv.Atoi(env("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	width, _, err := term.GetSize(int(stream.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return width
}
