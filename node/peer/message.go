package peer

import (
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"

	"licet/licensing"
	"licet/node"
)

// request is the content of a hop. Its members have no names, so any change requires a new version;
// see signatureVersion. A node that can't read a request refuses it, and the sender runs the commands
// itself.
type request struct {
	_        struct{} `cbor:",toarray"`
	From     []byte   // an incarnation
	License  []byte   // the id, with its slot
	Commands []command
}

type command struct {
	_         struct{} `cbor:",toarray"`
	Kind      byte
	Prefix    string // of the license key that was presented; empty: the license was named by its id
	Presented []byte // see LicenseKey.By of package licensing
	Device    string
	Name      string
	Named     bool
	ProductID string
	SeenStep  time.Duration
	Lease     time.Duration
	Parts     []byte // the components of the device
	Receipt   licensing.ReceiptAsk
	Caller    owner
	Pin       owner
	By        string
}

// The kinds of commands.
const (
	activate byte = iota + 1
	removeDevice
)

type owner struct {
	_         struct{} `cbor:",toarray"`
	AccountID string
	Mode      string
}

// codec encodes and decodes messages.
type codec struct {
	encode cbor.EncMode
	decode cbor.DecMode
}

func newCodec() (codec, error) {
	encode, err := cbor.EncOptions{}.EncMode()
	if err != nil {
		return codec{}, err
	}
	decode, err := cbor.DecOptions{MaxArrayElements: 4096, MaxMapPairs: 64, MaxNestedLevels: 8}.DecMode()
	return codec{encode, decode}, err
}

func (c codec) request(hop node.Hop) ([]byte, error) {
	r := request{From: hop.From[:], License: hop.License[:], Commands: make([]command, len(hop.Commands))}
	for i, cmd := range hop.Commands {
		switch cmd := cmd.(type) {
		case licensing.Activate:
			r.Commands[i] = command{
				Kind: activate, Prefix: cmd.Key.Prefix(), Presented: []byte(cmd.Key.By()),
				Device: cmd.Device, Name: cmd.Name, Named: cmd.Named,
				ProductID: cmd.ProductID, SeenStep: cmd.SeenStep, Lease: cmd.Lease, Parts: []byte(cmd.Components),
				Receipt: cmd.Receipt,
				Caller:  fromOwner(cmd.Caller), Pin: fromOwner(cmd.Pin), By: string(cmd.By),
			}
		case licensing.RemoveDevice:
			r.Commands[i] = command{
				Kind: removeDevice, Prefix: cmd.Key.Prefix(), Presented: []byte(cmd.Key.By()),
				Device: cmd.Device,
				Caller: fromOwner(cmd.Caller), Pin: fromOwner(cmd.Pin), By: string(cmd.By),
			}
		default:
			return nil, fmt.Errorf("can't send a command of type %T", cmd)
		}
	}
	return c.encode.Marshal(r)
}

func (c codec) readRequest(body []byte) (node.Hop, error) {
	var r request
	if err := c.decode.Unmarshal(body, &r); err != nil {
		return node.Hop{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	hop := node.Hop{Commands: make([]licensing.Command, len(r.Commands))}
	if copy(hop.From[:], r.From) != len(r.From) || len(r.From) != len(hop.From) {
		return node.Hop{}, fmt.Errorf("%w: the incarnation of the sender has %d bytes", errMalformed, len(r.From))
	}
	if copy(hop.License[:], r.License) != len(r.License) || len(r.License) != len(hop.License) {
		return node.Hop{}, fmt.Errorf("%w: the id of the license has %d bytes", errMalformed, len(r.License))
	}
	for i, cmd := range r.Commands {
		if cmd.Prefix != "" && !licensing.ValidKeyPrefix(cmd.Prefix) {
			return node.Hop{}, fmt.Errorf("%w: a command with a malformed prefix of a license key", errMalformed)
		}
		target := licensing.Target{Key: hop.License.Key(cmd.Prefix).WithBy(string(cmd.Presented)),
			Caller: cmd.Caller.owner(), Pin: cmd.Pin.owner(), By: licensing.Actor(cmd.By)}
		switch cmd.Kind {
		case activate:
			hop.Commands[i] = licensing.Activate{
				Target: target, Device: cmd.Device, Name: cmd.Name, Named: cmd.Named, ProductID: cmd.ProductID,
				SeenStep: cmd.SeenStep, Lease: cmd.Lease, Components: licensing.Components(cmd.Parts),
				Receipt: cmd.Receipt,
			}
		case removeDevice:
			hop.Commands[i] = licensing.RemoveDevice{Target: target, Device: cmd.Device}
		default:
			return node.Hop{}, fmt.Errorf("%w: a command of kind %d", errMalformed, cmd.Kind)
		}
		if !licensing.Components(cmd.Parts).Valid() {
			return node.Hop{}, fmt.Errorf("%w: a command with malformed components of a device", errMalformed)
		}
		if cmd.Device == "" {
			return node.Hop{}, fmt.Errorf("%w: a command without a device", errMalformed)
		}
	}
	return hop, nil
}

func fromOwner(o licensing.Owner) owner { return owner{AccountID: o.AccountID, Mode: string(o.Mode)} }

func (o owner) owner() licensing.Owner {
	return licensing.Owner{AccountID: o.AccountID, Mode: licensing.Mode(o.Mode)}
}
