package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/receipt"
)

func (s receiptGroup) receiptsIssue() *cobra.Command {
	var dir string
	var ask lengths
	return s.command(spec{
		use: "issue REQUEST...", short: "Bind devices without network, and make their receipt files",
		long: `Bind the device of each request, as an activation does, and make its receipt file. A request is a file
that licet offline request has made. Repeating the command takes no further slot.`,
		example: `  licet receipts issue request.txt
  licet receipts issue requests/*.txt --dir receipts
  licet receipts issue request.txt --lease-seconds 2592000`,
		route:   "POST /v1/receipts/batch and POST /v1/receipts",
		resumes: true, resumeHint: "repeat the command: a bound device takes no further slot", noOutput: true,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&dir, "dir", "", "`directory` for the receipt files; beside the requests if left out")
			leaseFlag(cmd, &ask.lease)
			cmd.Flags().IntVar(&ask.receipt, "receipt-seconds", 0,
				"`validity` of the receipts, in seconds (default: the product's)")
		},
		run: func(c *session, args []string) error {
			files, err := receiptFiles(args, dir)
			if err != nil {
				return err
			}
			failed, batch := 0, deviceFiles{lengths: ask}
			for i, path := range args {
				request, err := os.ReadFile(path)
				if err != nil {
					failed++
					fmt.Fprintf(c.stderr, "%s: %s\n", path, err)
					continue
				}
				if !batch.fits(string(request)) {
					failed += c.issueReceipts(&batch)
				}
				batch.add(path, files[i], string(request))
			}
			failed += c.issueReceipts(&batch)
			if failed > 0 {
				return fmt.Errorf("%w: %d of %d requests failed", errFailed, failed, len(args))
			}
			return nil
		},
	})
}

// receiptFiles returns the path of the receipt file of each request. It refuses requests that would share a file, and a
// directory that does not exist: otherwise the requests would bind devices before a file can't be written.
func receiptFiles(requests []string, dir string) (files []string, err error) {
	for _, path := range requests {
		in, name := dir, filepath.Base(path)
		if in == "" {
			in = filepath.Dir(path)
		}
		file := filepath.Join(in, strings.TrimSuffix(name, filepath.Ext(name))+".receipt.txt")
		if slices.Contains(files, file) {
			return nil, BadUsage("two requests would have the receipt file %s: rename one of them", file)
		}
		files = append(files, file)
	}
	if dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, BadUsage("--dir %s is no directory: make it first", dir)
		}
	}
	return files, nil
}

func (s receiptGroup) receiptsRelease() *cobra.Command {
	return s.command(spec{
		use: "release RELEASE_FILE", short: "Free the slot that a device without network has given back",
		long: `Free the device slot that a device without network has given back. RELEASE_FILE is a file of
licet offline release. A device that was bound again since then stays bound.`,
		example: `  licet receipts release release.txt`,
		route:   "POST /v1/receipts/release",
		resumes: true, resumeHint: "repeat the command: a slot that is free stays free",
		run: func(c *session, args []string) error {
			released, err := readArmored(args[0], wholeRelease, "licet offline release")
			if err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Receipts.ReleaseSeat(c.ctx, *released, as...))
			})
		},
	})
}

// wholeRelease returns a text that is an armored release.
func wholeRelease(text string) (*string, error) {
	_, _, err := receipt.ReleaseOwner(text)
	return &text, err
}

func (s Setup) receiptsVerify() *cobra.Command {
	var root, output, request string
	var want receipt.Verifier
	cmd := &cobra.Command{
		Use:   "verify RECEIPT_FILE",
		Short: "Verify a receipt file under a root key",
		Long: `Verify a receipt file under a root key, as a program does without network: the signatures, the times,
and the account, product, device and request of the flags. The command calls no service and does not check
revocations.`,
		Example: `  licet receipts verify receipt.txt --root "$(licet receipts root)"
  licet receipts verify receipt.txt --root licet_root_… --request request.txt`,
		Args: Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if want.Root, err = receipt.ParseRoot(root); err != nil {
				return BadUsage("--root must be the line that licet receipts root prints: licet_root_ and 43 " +
					"characters")
			}
			if request != "" {
				asked, err := readArmored(request, receipt.ParseRequest, "licet offline request")
				if err != nil {
					return err
				}
				want.DeviceID, want.Nonce = asked.DeviceID, asked.Nonce
			}
			file, err := readArmored(args[0], receipt.ParseFile, "licet receipts issue")
			if err != nil {
				return err
			}
			r, err := want.VerifyFile(file, time.Now())
			var refused *receipt.Error
			if errors.As(err, &refused) {
				return fmt.Errorf("%s is not good: %s (%s)", args[0], refused.Detail, refused.Reason)
			}
			if err != nil {
				return err
			}
			data, err := json.Marshal(r)
			if err != nil {
				return err
			}
			c := session{
				json: output == "json", look: s.look(cmd), stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(),
			}
			return c.print(data)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&root, "root", "", "root `key` of the account and mode (required)")
	fs.StringVar(&request, "request", "", "`file` with the request that the receipt must answer")
	fs.StringVar(&want.AccountID, "account-id", "", "`account` that the receipt must be of")
	fs.StringVar(&want.ProductID, "product-id", "", "`product` that the receipt must be of")
	fs.StringVar(&want.DeviceID, "device-id", "", "`device` that the receipt must be of")
	addOutput(cmd, &output)
	return cmd
}

// readArmored reads an armored text from a file. maker is the command that makes such files.
func readArmored[T any](path string, parse func(string) (*T, error), maker string) (*T, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	content, err := parse(string(text))
	var refused *receipt.Error
	if errors.As(err, &refused) {
		return nil, fmt.Errorf("%s: %s; name a file that %s has made", path, refused.Detail, maker)
	}
	return content, err
}
