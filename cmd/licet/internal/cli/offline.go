package cli

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"rsc.io/qr"

	"licet/licensing/keyring"
	"licet/receipt"
)

// OfflineCommands returns the commands that run on a device without network. They call no service.
func OfflineCommands() *cobra.Command {
	return group("offline", "License a device that has no network",
		`  licet offline request LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 lab-7 --out request.txt
  licet offline release receipt.txt --out release.txt`,
		offlineRequest(), offlineRelease())
}

const deviceKeyFile = "licet-device.key"

func offlineRequest() *cobra.Command {
	var r receipt.Request
	var parts map[string]string
	var key, code string
	var out outFile
	cmd := &cobra.Command{
		Use:   "request LICENSE_KEY DEVICE_ID",
		Short: "Make a request for a receipt, to carry to a computer with network",
		Long: `Make a request for a receipt. The command calls no service: carry the request to a computer with
network, where licet receipts issue binds the device and makes the receipt file. The request has
the license key. The command checks the form of the license key. Only the service detects a typo in
a well-formed key: licet receipts issue then refuses the request with 40001 or 40401, and the
device needs another request.

Only a receipt for the newest request counts on the device.

The command makes a key for the device, or takes the one in the file --key. With this key the
device can give its slot back, also without network (licet offline release).`,
		Example: `  licet offline request LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 lab-7 --out request.txt
  licet offline request LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 lab-7 --qr request.png`,
		Args: Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !keyring.IsKeyForm(args[0]) {
				return BadUsage("LICENSE_KEY is not in the form of a license key, a prefix and five groups of five " +
					"letters and digits: compare it with the order")
			}
			if err := out.check(code); err != nil {
				return err
			}
			device, err := deviceKey(key, true)
			if err != nil {
				return err
			}
			r.LicenseKey, r.DeviceID, r.Nonce = args[0], args[1], rand.Text()
			r.DeviceKey = base64.RawURLEncoding.EncodeToString(device.Public().(ed25519.PublicKey))
			r.Components = componentHashes(parts)
			text, err := r.Armor()
			if err != nil {
				return err
			}
			if code != "" {
				if err := writeCode(cmd, code, text); err != nil {
					return err
				}
			}
			return out.write(cmd, text)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&r.DeviceName, "device-name", "", "`name` of the device, for people")
	componentFlag(cmd, &parts)
	deviceKeyFlag(cmd, &key)
	fs.StringVar(&code, "qr", "", "also write the request as a QR code: a PNG `file`, or - for the terminal")
	out.addFlags(cmd)
	return cmd
}

func offlineRelease() *cobra.Command {
	var key string
	var out outFile
	cmd := &cobra.Command{
		Use:   "release RECEIPT_FILE",
		Short: "Give the slot of a device without network back",
		Long: `Make a signed release of the device's slot. The command calls no service: carry the release to a
computer with network, where licet receipts release frees the slot. Remove the receipt from the
device: the command does not.`,
		Example: `  licet offline release receipt.txt --out release.txt`,
		Args:    Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			file, err := readArmored(args[0], receipt.ParseFile, "licet receipts issue")
			if err != nil {
				return err
			}
			device, err := deviceKey(key, false)
			if err != nil {
				return err
			}
			if !receipt.NamesKey(file.Receipt, device.Public().(ed25519.PublicKey)) {
				return fmt.Errorf("%s does not name the key in %s, so a release would be refused: name the file that "+
					"licet offline request has made with --key", args[0], key)
			}
			released, err := (&receipt.Release{Receipt: file.Receipt, IssuedAt: time.Now().Unix()}).Sign(device)
			if err != nil {
				return err
			}
			return out.write(cmd, released)
		},
	}
	cmd.Flags().SortFlags = false
	deviceKeyFlag(cmd, &key)
	out.addFlags(cmd)
	return cmd
}

func deviceKeyFlag(cmd *cobra.Command, key *string) {
	cmd.Flags().StringVar(key, "key", deviceKeyFile, "`file` with the device's key")
}

// outFile is where a command writes its text.
type outFile struct {
	path  string // empty: standard output
	force bool
}

func (o *outFile) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.path, "out", "", "`file` to write; standard output if left out")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace files that exist")
}

// check refuses to replace the file, or one of others, without --force: the user may wait for the answer to the text in
// it.
func (o *outFile) check(others ...string) error {
	for _, path := range append(others, o.path) {
		if path == "" || path == "-" || o.force {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s exists: name another file, or replace it with --force", path)
		}
	}
	return nil
}

func (o *outFile) write(cmd *cobra.Command, text string) error {
	if o.path == "" {
		_, err := fmt.Fprint(cmd.OutOrStdout(), text)
		return err
	}
	return os.WriteFile(o.path, []byte(text), 0o600)
}

// deviceKey returns the key in a file, PEM with PKCS #8. If there is no such file, it makes a key where that is wanted.
func deviceKey(path string, create bool) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		return newDeviceKey(path)
	case err != nil:
		return nil, fmt.Errorf("read the device's key: %w; name the file that licet offline request has made with "+
			"--key", err)
	}
	if block, _ := pem.Decode(text); block != nil {
		parsed, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
		if key, ok := parsed.(ed25519.PrivateKey); ok {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%s contains no Ed25519 key in PEM (PKCS #8): name another file with --key", path)
}

func newDeviceKey(path string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write the device's key: %w", err)
	}
	return key, errors.Join(pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), f.Sync(), f.Close())
}

// writeCode writes a text as a QR code: as a PNG, or for -, as text to standard error.
func writeCode(cmd *cobra.Command, path, text string) error {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return fmt.Errorf("the request is too long for a QR code: leave some --component out, or carry the text")
	}
	if path != "-" {
		return os.WriteFile(path, code.PNG(), 0o600)
	}
	const quiet = 4 // modules of margin, which readers need
	var b strings.Builder
	for y := -quiet; y < code.Size+quiet; y += 2 {
		for x := -quiet; x < code.Size+quiet; x++ {
			// Light modules are drawn, since most terminals are dark.
			b.WriteString([]string{"█", "▄", "▀", " "}[2*b2i(code.Black(x, y+1))+b2i(code.Black(x, y))])
		}
		b.WriteByte('\n')
	}
	_, err = fmt.Fprint(cmd.ErrOrStderr(), b.String())
	return err
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
