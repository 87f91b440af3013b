package cli

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
)

// TestQRCode: another library reads the request from both forms of its QR code, as short and as long as it may be.
func TestQRCode(t *testing.T) {
	t.Parallel()
	const key = "LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1"
	components := []string{}
	for _, name := range []string{"board", "cpu", "disk", "mac"} {
		components = append(components, "--component", name+"="+strings.Repeat(name, 9))
	}
	for name, more := range map[string][]string{"short": nil, "with components": components} {
		dir := t.TempDir()
		text, code := filepath.Join(dir, "request.txt"), filepath.Join(dir, "request.png")
		run := func(qr string) (terminal string) {
			t.Helper()
			var out bytes.Buffer
			cmd := OfflineCommands()
			cmd.SetErr(&out)
			cmd.SetArgs(append([]string{"request", key, "lab-7", "--key", filepath.Join(dir, "device.key"),
				"--out", text, "--qr", qr, "--force"}, more...))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(name, err)
			}
			return out.String()
		}
		compare := func(form string, drawn image.Image) {
			t.Helper()
			request, err := os.ReadFile(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := readCode(t, drawn); got != string(request) {
				t.Errorf("%s: the QR code %s contains %q, want %q", name, form, got, request)
			}
		}
		run(code)
		file, err := os.ReadFile(code)
		if err != nil {
			t.Fatal(err)
		}
		drawn, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(name, err)
		}
		compare("in a file", drawn)
		compare("in a terminal", ofTerminal(t, run("-")))
	}
}

// readCode returns the text of a QR code.
func readCode(t *testing.T, drawn image.Image) string {
	t.Helper()
	bits, err := gozxing.NewBinaryBitmapFromImage(drawn)
	if err != nil {
		t.Fatal(err)
	}
	hints := map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true}
	read, err := qrcode.NewQRCodeReader().Decode(bits, hints)
	if err != nil {
		t.Fatal(err)
	}
	return read.GetText()
}

// ofTerminal returns what a dark terminal shows for lines of half blocks.
func ofTerminal(t *testing.T, text string) image.Image {
	t.Helper()
	const size = 4 // pixels of half of a character
	var lines [][]rune
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && strings.Trim(line, "█▄▀ ") == "" {
			lines = append(lines, []rune(line))
		}
	}
	if len(lines) == 0 {
		t.Fatalf("no QR code in %q", text)
	}
	shown := image.NewGray(image.Rect(0, 0, size*len(lines[0]), 2*size*len(lines)))
	for y := range shown.Rect.Dy() {
		for x := range shown.Rect.Dx() {
			lit := "█▀"
			if y/size%2 == 1 {
				lit = "█▄"
			}
			if strings.ContainsRune(lit, lines[y/size/2][x/size]) {
				shown.SetGray(x, y, color.Gray{Y: 255})
			}
		}
	}
	return shown
}
