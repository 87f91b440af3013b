package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"licet/client"
)

// productID is the product that the shop sells. Licenses of other products do not open this program.
const productID = "notes"

// grace is how long the program starts without an answer of the service, counted from the last successful check.
const grace = 7 * 24 * time.Hour

var errNotActivated = errors.New("notes has no license on this device: run notes activate LICENSE-KEY")

// licensed is what the program stores about its license.
type licensed struct {
	LicenseKey string    `json:"license_key"`
	DeviceID   string    `json:"device_id"`
	CheckedAt  time.Time `json:"checked_at"`
}

// guard has the license of the program on this device.
type guard struct {
	service *client.Client
	file    string // contains a value of type licensed, as JSON
	now     func() time.Time
}

// activate binds this device to a license. Activating the same license again takes no second slot, since the device
// keeps its id.
func (g *guard) activate(ctx context.Context, key string) error {
	stored, err := g.load()
	if errors.Is(err, errNotActivated) {
		stored.DeviceID = rand.Text() // random, not a serial number: the id says nothing about the user's hardware
	} else if err != nil {
		return err
	}
	host, _ := os.Hostname()
	_, err = g.service.Activate(ctx, client.Activation{
		LicenseKey: key,
		DeviceID:   stored.DeviceID,
		DeviceName: host,
		ProductID:  productID,
	})
	switch {
	case client.HasReason(err, client.ReasonDeviceLimitReached):
		return errors.New("all devices of this license are in use: run notes deactivate on one of them")
	case client.HasReason(err, client.ReasonInvalidLicenseKey, client.ReasonLicenseNotFound):
		return errors.New("this license key does not exist: compare it with the key in your order")
	case err != nil:
		return err
	}
	stored.LicenseKey, stored.CheckedAt = key, g.now()
	return g.save(stored)
}

// check reports whether the program may start. Without an answer of the service the program starts during grace.
func (g *guard) check(ctx context.Context) error {
	stored, err := g.load()
	if err != nil {
		return err
	}
	validity, err := g.service.Validate(ctx, client.Validation{
		LicenseKey: stored.LicenseKey,
		DeviceID:   stored.DeviceID,
		ProductID:  productID,
	})
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && refused.Status < 500 && !refused.Retryable:
		return err // the service has answered: there is no such license
	case err != nil && g.now().Sub(stored.CheckedAt).Abs() < grace:
		return nil // no answer
	case err != nil:
		return fmt.Errorf("notes must reach its license service once in %d days: %w", int(grace.Hours()/24), err)
	case !validity.Valid:
		return fmt.Errorf("this license does not open notes any more: %s", validity.Reason)
	}
	stored.CheckedAt = g.now()
	return g.save(stored)
}

// deactivate frees the slot of this device, for another device.
func (g *guard) deactivate(ctx context.Context) error {
	stored, err := g.load()
	if err != nil {
		return err
	}
	_, err = g.service.Deactivate(ctx, client.Deactivation{
		LicenseKey: stored.LicenseKey, DeviceID: stored.DeviceID,
	})
	if err != nil {
		return err
	}
	return os.Remove(g.file)
}

func (g *guard) load() (stored licensed, err error) {
	text, err := os.ReadFile(g.file)
	if errors.Is(err, os.ErrNotExist) {
		return stored, errNotActivated
	}
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	return stored, err
}

func (g *guard) save(stored licensed) error {
	text, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(g.file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(g.file, text, 0o600)
}
