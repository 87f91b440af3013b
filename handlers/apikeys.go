package handlers

import (
	"context"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/service"
)

// keyRoutes are the functions of the routes of API keys.
type keyRoutes struct{ *Server }

// apiKey is an API key as responses show it: without its text, its hash and its
// secrets.
type apiKey struct {
	ID                  string                 `json:"id"`
	Name                string                 `json:"name"`
	Status              licensing.APIKeyStatus `json:"status"`
	Scopes              []string               `json:"scopes"`
	RequireSignature    bool                   `json:"require_signature"`
	ExpiresAt           timestamp              `json:"expires_at"`
	CreatedAt           timestamp              `json:"created_at"`
	LastUsedAt          timestamp              `json:"last_used_at"`
	RevokedAt           timestamp              `json:"revoked_at"`
	PreviousSecretUntil timestamp              `json:"previous_secret_until"`
	AccountID           string                 `json:"account_id"`
	Mode                licensing.Mode         `json:"mode"`
}

// issuedAPIKey adds the text and the secret, which are shown once. Later they are null.
type issuedAPIKey struct {
	APIKey    *string `json:"api_key"`
	APISecret *string `json:"api_secret"`
	apiKey
}

func apiKeyAnswer(k *licensing.APIKey, now time.Time) apiKey {
	answer := apiKey{
		ID:               k.ID,
		Name:             k.Name,
		Status:           k.Status(now),
		Scopes:           append([]string{}, k.Scopes...),
		RequireSignature: k.RequireSignature,
		ExpiresAt:        timestamp(k.ExpiresAt),
		CreatedAt:        timestamp(k.CreatedAt),
		LastUsedAt:       timestamp(k.LastUsedAt),
		RevokedAt:        timestamp(k.RevokedAt),
		AccountID:        k.Owner.AccountID,
		Mode:             k.Owner.Mode,
	}
	if k.Usable(now) && now.Before(k.Previous.Until) {
		answer.PreviousSecretUntil = timestamp(k.Previous.Until)
	}
	return answer
}

func issuedAnswer(issued *service.IssuedKey, now time.Time) issuedAPIKey {
	return issuedAPIKey{
		APIKey:    orNull(issued.Text),
		APISecret: orNull(issued.Secret),
		apiKey:    apiKeyAnswer(&issued.Key, now),
	}
}

// newAPIKey asks for an API key.
type newAPIKey struct {
	Name             text  `json:"name"`
	Scopes           texts `json:"scopes"`
	ExpiresAt        text  `json:"expires_at"`
	RequireSignature flag  `json:"require_signature"`
	idempotencyKey   `json:"-"`

	expires time.Time
	signed  bool
}

func (in *newAPIKey) check(c *checks) {
	c.apiKeyName("name", in.Name)
	c.scopes("scopes", in.Scopes)
	in.expires = c.inheritedEnd("expires_at", in.ExpiresAt)
	in.signed = c.inheritedDemand("require_signature", in.RequireSignature)
}

// inheritedEnd checks the end of a new API key, which must not be later than the end of its creator. Without an end,
// the new key takes the end of its creator.
func (c *checks) inheritedEnd(field string, in text) time.Time {
	end := c.future(field, in)
	switch {
	case c.caller == nil || c.caller.ExpiresAt.IsZero():
		return end
	case !in.given:
		return c.caller.ExpiresAt
	case end.After(c.caller.ExpiresAt):
		c.add(field, "must not be after "+c.caller.ExpiresAt.UTC().Format(time.RFC3339Nano)+
			", when the API key of this request expires")
	}
	return end
}

// inheritedDemand checks whether requests with a new API key must be signed: always, if this holds for its creator.
func (c *checks) inheritedDemand(field string, in flag) bool {
	demanded := c.caller != nil && c.caller.RequireSignature
	if demanded && in.given && !in.value {
		c.add(field, "must be true or left out, because the API key of this request has require_signature")
	}
	return demanded || in.value
}

func (c *rules) apiKeyName(field string, in text) {
	switch {
	case c.describe(field, Limits{Required: true, MinLength: 1, MaxLength: maxAPIKeyName, Pattern: patternOneLine}):
	case !in.given:
		c.add(field, problemRequired)
	case !licensing.ValidAPIKeyName(in.value):
		c.add(field, "must be 1 to 255 characters without control characters")
	}
}

// scopes checks the scopes of a new API key, which must not exceed the scopes of its creator.
func (c *checks) scopes(field string, in texts) {
	switch {
	case c.describe(field, Limits{Required: true, MinItems: 1, MaxItems: maxScopes,
		Enum: append(licensing.ScopeForms(), "*")}):
	case !in.given:
		c.add(field, problemRequired)
	case !licensing.ValidScopes(in.value):
		c.add(field, "must be 1 to 32 of "+licensing.ScopesInWords())
	default:
		if beyond := c.caller.Beyond(in.value); len(beyond) > 0 {
			c.add(field, "must be within the scopes of the API key of this request, which lacks "+
				strings.Join(beyond, ", "))
		}
	}
}

// createAPIKey makes an API key for the caller's account and mode.
func (s keyRoutes) createAPIKey(ctx context.Context, c *call, in newAPIKey) (issuedAPIKey, error) {
	created := service.KeyCreation{
		NewKey: service.NewKey{
			Owner:            c.owner(),
			Name:             in.Name.value,
			Scopes:           in.Scopes.value,
			ExpiresAt:        in.expires,
			RequireSignature: in.signed,
		},
		Once:  in.once,
		Stale: in.stale,
	}
	s.rates.chargeAPIKey(c)
	issued, replayed, err := s.cfg.Node.CreateAPIKey(ctx, created)
	return s.issuedKey(c, "created", &issued, replayed, err)
}

func (s keyRoutes) issuedKey(
	c *call, what string, issued *service.IssuedKey, replayed bool, err error,
) (issuedAPIKey, error) {
	c.replayed = replayed
	if err != nil {
		return issuedAPIKey{}, err
	}
	if !replayed {
		s.logChange(c, what, &issued.Key)
	}
	return issuedAnswer(issued, s.cfg.Node.Now()), nil
}

// logChange logs a change of an API key, its actor and the address of the client, since no event reports the change.
func (s keyRoutes) logChange(c *call, what string, key *licensing.APIKey) {
	s.cfg.Log.Info().Str("account_id", key.Owner.AccountID).Str("mode", string(key.Owner.Mode)).
		Str("api_key_id", key.ID).Str("by", string(c.actor())).Stringer("address", s.rates.client(c)).
		Msg("an API key was " + what)
}

// apiKeyPath names an API key.
type apiKeyPath struct {
	ID text `path:"key_id" json:"-"`
}

// getAPIKey looks an API key up.
func (s keyRoutes) getAPIKey(ctx context.Context, c *call, in apiKeyPath) (apiKey, error) {
	key, err := s.cfg.Node.APIKey(ctx, c.owner(), in.ID.value)
	if err != nil {
		return apiKey{}, err
	}
	return apiKeyAnswer(&key, s.cfg.Node.Now()), nil
}

// revokeAPIKey ends an API key, which may be the caller's own.
func (s keyRoutes) revokeAPIKey(ctx context.Context, c *call, in apiKeyPath) (apiKey, error) {
	key, err := s.cfg.Node.RevokeAPIKey(ctx, c.owner(), in.ID.value)
	if err != nil {
		return apiKey{}, err
	}
	s.logChange(c, "revoked", &key)
	return apiKeyAnswer(&key, s.cfg.Node.Now()), nil
}

// secretRotation asks for a new secret. The old one stays valid for the overlap.
type secretRotation struct {
	Overlap        text `json:"overlap"`
	optionalBody   `json:"-"`
	idempotencyKey `json:"-"`

	overlap time.Duration
}

func (in *secretRotation) check(c *checks) {
	in.overlap = c.overlap("overlap", in.Overlap, service.DefaultOverlap)
}

// apiKeyRotation asks for a new secret of an API key.
type apiKeyRotation struct {
	apiKeyPath
	secretRotation
}

// rotateAPIKey gives an API key a new secret.
func (s keyRoutes) rotateAPIKey(ctx context.Context, c *call, in apiKeyRotation) (issuedAPIKey, error) {
	s.rates.chargeAPIKey(c)
	issued, replayed, err := s.cfg.Node.RotateAPIKey(ctx, service.KeyRotation{
		Owner:   c.owner(),
		ID:      in.ID.value,
		Overlap: in.overlap,
		By:      c.key,
		Once:    in.once,
	})
	return s.issuedKey(c, "rotated", &issued, replayed, err)
}

// overlap parses how long a replaced secret or license key stays valid; standard, if in is left out.
func (c *rules) overlap(field string, in text, standard time.Duration) time.Duration {
	if c.describe(field, Limits{Format: formatDuration}) || !in.given {
		return standard
	}
	d, ok := parseDuration(in.value)
	if !ok || d > service.MaxOverlap {
		c.add(field, "must be an ISO 8601 duration of weeks or of days, hours, minutes and seconds, "+
			"from PT0S to P30D, such as PT24H")
	}
	return d
}

// isoDuration is an ISO 8601 duration of units of fixed length, without
// months and years.
var isoDuration = regexp.MustCompile(
	`^P(?:(\d{1,7})W|(?:(\d{1,7})D)?(?:T(?:(\d{1,7})H)?(?:(\d{1,7})M)?(?:(\d{1,7})S)?)?)$`)

func parseDuration(in string) (time.Duration, bool) {
	parts := isoDuration.FindStringSubmatch(in)
	if parts == nil || strings.HasSuffix(in, "P") || strings.HasSuffix(in, "T") {
		return 0, false
	}
	const day = 24 * 60 * 60
	var seconds int64
	for i, unit := range []int64{7 * day, day, 60 * 60, 60, 1} {
		n, _ := strconv.ParseInt("0"+parts[i+1], 10, 64) // of seven digits at most
		seconds += n * unit
	}
	if seconds > math.MaxInt64/int64(time.Second) {
		return 0, false
	}
	return time.Duration(seconds) * time.Second, true
}
