package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"licet/client"
	"licet/client/offline"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "offline:", strings.TrimPrefix(err.Error(), "offline: "))
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 4 && args[0] == "verify" {
		return verify(args[1], args[2], args[3], out)
	}
	license, err := newLicense()
	if err != nil {
		return err
	}
	switch {
	case len(args) == 2 && args[0] == "activate":
		name, _ := os.Hostname()
		if _, err := license.Activate(ctx, args[1], name); err != nil {
			return err
		}
		fmt.Fprintln(out, "activated")
	case len(args) == 1 && args[0] == "deactivate":
		if err := license.Deactivate(ctx); err != nil {
			return err
		}
		fmt.Fprintln(out, "deactivated")
	case len(args) == 2 && args[0] == "request":
		return request(license, args[1], out)
	case len(args) == 2 && args[0] == "import":
		return take(license, args[1], out)
	case len(args) == 1 && args[0] == "release":
		return release(license, out)
	case len(args) == 0:
		check, err := license.Check(ctx)
		if err != nil {
			return err
		}
		if !check.Allowed {
			return fmt.Errorf("no license: %s", check.Reason)
		}
		entitlements, err := json.Marshal(check.Receipt.Entitlements)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "the program starts, with %s\n", entitlements)
	default:
		return errors.New("usage: offline [activate LICENSE-KEY | deactivate | request LICENSE-KEY | import FILE | " +
			"release | verify DEVICE-ID REQUEST FILE]")
	}
	return nil
}

// newLicense returns the license of the program on this device. A program that you sell has the values of the
// environment built in.
func newLicense() (*offline.License, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "licet-offline")
	device, err := deviceID(filepath.Join(dir, "device"))
	if err != nil {
		return nil, err
	}
	return offline.New(offline.Config{
		URL:       os.Getenv("LICET_URL"),
		Root:      os.Getenv("LICET_ROOT"),
		AccountID: os.Getenv("LICET_ACCOUNT"),
		Mode:      "test",
		ProductID: "notes",
		DeviceID:  device,
		Store:     offline.FileStore(filepath.Join(dir, "license.json")),
		Grace:     3 * 24 * time.Hour, // users may be on a trip
		Options:   []client.Option{client.RetryFor(3 * time.Second)},
	})
}

// deviceID returns an id that stays the same: random, so that it says nothing about the user's hardware.
func deviceID(path string) (string, error) {
	text, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return string(text), err
	}
	id := rand.Text()
	return id, offline.FileStore(path).Save([]byte(id))
}
