package handlers

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/service"
)

// apiKey is the answer of everything that is about one API key. It has nothing
// of the key's text, its hash or its secrets.
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

// issuedAPIKey adds what is shown once, and null where it is not shown.
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
		APIKey:    optional(issued.Text),
		APISecret: optional(issued.Secret),
		apiKey:    apiKeyAnswer(&issued.Key, now),
	}
}

// createAPIKey makes an API key for the caller's account and mode.
func (s *Server) createAPIKey(r *request) (any, error) {
	var bad, late problems
	wanted, err := readNewAPIKey(r, &bad)
	if err != nil {
		return nil, err
	}
	late.future("expires_at", wanted.ExpiresAt, s.cfg.Node.Now())
	in := service.KeyCreation{NewKey: wanted}
	in.Once, in.Stale = bad.onceInTime(r, late)
	if err := bad.err(); err != nil {
		return nil, err
	}
	issued, replayed, err := s.cfg.Node.CreateAPIKey(r.ctx, in)
	r.replayed = replayed
	if err != nil {
		return nil, err
	}
	return issuedAnswer(&issued, s.cfg.Node.Now()), nil
}

// readNewAPIKey reads the body of a new API key, and notes what is bad about
// it.
func readNewAPIKey(r *request, bad *problems) (service.NewKey, error) {
	var name, expires text
	var scopes texts
	var sign flag
	err := decodeObject(r.body(), true,
		textMember("name", &name),
		textsMember("scopes", &scopes),
		textMember("expires_at", &expires),
		flagMember("require_signature", &sign),
	)
	if err != nil {
		return service.NewKey{}, err
	}
	bad.apiKeyName("name", name)
	bad.scopes("scopes", scopes, r.caller)
	return service.NewKey{
		Owner:            r.caller.Owner,
		Name:             name.value,
		Scopes:           scopes.values,
		ExpiresAt:        bad.moment("expires_at", expires),
		RequireSignature: sign.value,
	}, nil
}

func (p *problems) apiKeyName(field string, in text) {
	switch {
	case !in.given:
		p.add(field, problemRequired)
	case !licensing.ValidAPIKeyName(in.value):
		p.add(field, "must be 1 to 255 characters without control characters")
	}
}

// scopes checks what a new API key is to be allowed. Nobody can give away what
// they don't have: a key must not be a way to more than its maker may do.
func (p *problems) scopes(field string, in texts, creator *licensing.APIKey) {
	switch {
	case !in.given:
		p.add(field, problemRequired)
	case !licensing.ValidScopes(in.values):
		p.add(field, "must be 1 to 32 of "+strings.Join(licensing.Scopes(), ", ")+", each also with :read behind it, or *")
	default:
		if beyond := creator.Beyond(in.values); len(beyond) > 0 {
			p.add(field, "must be within the scopes of the API key that makes this one, which lacks "+strings.Join(beyond, ", "))
		}
	}
}

// getAPIKey looks an API key up.
func (s *Server) getAPIKey(r *request) (any, error) {
	key, err := s.cfg.Node.APIKey(r.ctx, r.callerOwner(), r.value("key_id"))
	if err != nil {
		return nil, err
	}
	return apiKeyAnswer(&key, s.cfg.Node.Now()), nil
}

// revokeAPIKey ends an API key, which may be the caller's own.
func (s *Server) revokeAPIKey(r *request) (any, error) {
	key, err := s.cfg.Node.RevokeAPIKey(r.ctx, r.callerOwner(), r.value("key_id"))
	if err != nil {
		return nil, err
	}
	return apiKeyAnswer(&key, s.cfg.Node.Now()), nil
}

// rotateAPIKey gives an API key a new secret.
func (s *Server) rotateAPIKey(r *request) (any, error) {
	var bad problems
	var overlap text
	if err := decodeOptional(r.body(), textMember("overlap", &overlap)); err != nil {
		return nil, err
	}
	in := service.KeyRotation{
		Owner:   r.callerOwner(),
		ID:      r.value("key_id"),
		Overlap: bad.overlap("overlap", overlap),
		By:      r.caller,
		Once:    bad.once(r),
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	issued, replayed, err := s.cfg.Node.RotateAPIKey(r.ctx, in)
	r.replayed = replayed
	if err != nil {
		return nil, err
	}
	return issuedAnswer(&issued, s.cfg.Node.Now()), nil
}

// overlap reads how long a secret that is replaced stays good.
func (p *problems) overlap(field string, in text) time.Duration {
	if !in.given {
		return service.DefaultOverlap
	}
	d, ok := parseDuration(in.value)
	if !ok || d > service.MaxOverlap {
		p.add(field, "must be an ISO 8601 duration of weeks or of days, hours, minutes and seconds, from PT0S to P30D, such as PT24H")
	}
	return d
}

// isoDuration is a duration of ISO 8601 that is always equally long: not so
// months and years.
var isoDuration = regexp.MustCompile(`^P(?:(\d{1,7})W|(?:(\d{1,7})D)?(?:T(?:(\d{1,7})H)?(?:(\d{1,7})M)?(?:(\d{1,7})S)?)?)$`)

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
