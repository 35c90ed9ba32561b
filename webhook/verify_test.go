package webhook_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/fencepost-go/fencepost/webhook"
)

// The vectors that the specification's own libraries are tested with.
const (
	vectorID         = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorTime       = 1614265330
	vectorBody       = `{"test": 2432232314}`
	vectorSecret     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorSignature  = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	vectorPrivate    = "whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk="
	vectorSignatureA = "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag=="
)

// at runs a test at an instant.
func at(t *testing.T, now time.Time, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now)) // the bubble's clock begins in the year 2000, and takes no time
		test(t)
	})
}

func vectorHeader(t testing.TB, secrets ...webhook.Secret) http.Header {
	t.Helper()
	header, err := webhook.Sign(vectorID, time.Unix(vectorTime, 0), []byte(vectorBody), secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return header
}

// Shows: S4.20
func TestVectors(t *testing.T) {
	t.Parallel()
	header := vectorHeader(t, parse(t, vectorSecret), parse(t, vectorPrivate))
	if got, want := header.Get("webhook-signature"), vectorSignature+" "+vectorSignatureA; got != want {
		t.Errorf("signed %s, want %s", got, want)
	}
	at(t, time.Unix(vectorTime, 0), func(t *testing.T) {
		for _, signature := range []string{vectorSignature, vectorSignatureA, "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= v2,AAAA " + vectorSignature} {
			header.Set("webhook-signature", signature)
			secret := parse(t, vectorSecret)
			if strings.HasPrefix(signature, "v1a") {
				secret = parse(t, vectorPrivate)
			}
			got, err := webhook.Verify(header, []byte(vectorBody), []webhook.Secret{secret}, 0)
			if err != nil || got.ID != vectorID || got.At.Unix() != vectorTime {
				t.Errorf("%s: %+v, %v", signature, got, err)
			}
		}
	})
}

// The specification's Go library, which knows v1 alone, agrees in both directions.
func TestReferenceLibrary(t *testing.T) {
	t.Parallel()
	for range 50 {
		secret, body := webhook.NewSecret(), []byte(webhook.NewSecret().Reveal())
		reference, err := standardwebhooks.NewWebhook(secret.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		header, err := webhook.Sign("msg_1", now, body, webhook.NewSecret(), secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := reference.Verify(body, header); err != nil {
			t.Errorf("ours: %v", err)
		}
		signature, err := reference.Sign("msg_1", now, body)
		if err != nil {
			t.Fatal(err)
		}
		header.Set("webhook-signature", signature)
		if _, err := webhook.Verify(header, body, []webhook.Secret{secret}, 0); err != nil {
			t.Errorf("theirs: %v", err)
		}
	}
}

// What is altered in one bit, anywhere, is refused.
// Shows: S4.20
func TestVerifyAltered(t *testing.T) {
	t.Parallel()
	private, public := webhook.NewKeyPair()
	for _, row := range [][2]webhook.Secret{{parse(t, vectorSecret), parse(t, vectorSecret)}, {private, public}} {
		header, err := webhook.Sign(vectorID, time.Now(), []byte(vectorBody), row[0])
		if err != nil {
			t.Fatal(err)
		}
		check := func(header http.Header, body string) error {
			_, err := webhook.Verify(header, []byte(body), []webhook.Secret{row[1]}, time.Hour)
			return err
		}
		if err := check(header, vectorBody); err != nil {
			t.Fatal(err)
		}
		for bit := range len(vectorBody) * 8 {
			if err := check(header, flipped(vectorBody, bit)); !errors.Is(err, webhook.ErrNoMatch) {
				t.Errorf("bit %d of the body: %v", bit, err)
			}
		}
		for _, body := range []string{"", vectorBody + " ", vectorBody[1:]} {
			if err := check(header, body); !errors.Is(err, webhook.ErrNoMatch) {
				t.Errorf("%q: %v", body, err)
			}
		}
		for name := range header {
			for bit := range len(header.Get(name)) * 8 {
				altered := header.Clone()
				altered.Set(name, flipped(header.Get(name), bit))
				var refused *webhook.VerifyError
				if err := check(altered, vectorBody); !errors.As(err, &refused) {
					t.Errorf("bit %d of %s: %v", bit, name, err)
				}
			}
		}
	}
}

func flipped(text string, bit int) string {
	b := []byte(text)
	b[bit/8] ^= 1 << (bit % 8)
	return string(b)
}

// Shows: S4.20
func TestVerifyTolerance(t *testing.T) {
	t.Parallel()
	secret := parse(t, vectorSecret)
	header := vectorHeader(t, secret)
	for _, row := range []struct {
		after, tolerance time.Duration
		want             error
	}{
		{0, 0, nil},
		{5 * time.Minute, 0, nil}, {5*time.Minute + 1, 0, webhook.ErrTooOld},
		{-5 * time.Minute, 0, nil}, {-5*time.Minute - 1, 0, webhook.ErrTooNew},
		{time.Second, time.Second, nil}, {2 * time.Second, time.Second, webhook.ErrTooOld}, {-2 * time.Second, time.Second, webhook.ErrTooNew},
		{time.Hour, time.Hour, nil}, {24 * time.Hour, time.Hour, webhook.ErrTooOld},
	} {
		at(t, time.Unix(vectorTime, 0).Add(row.after), func(t *testing.T) {
			_, err := webhook.Verify(header, []byte(vectorBody), []webhook.Secret{secret}, row.tolerance)
			if !errors.Is(err, row.want) {
				t.Errorf("%v after, tolerating %v: %v", row.after, row.tolerance, err)
			}
		})
	}
	far := vectorHeader(t, secret)
	far.Set("webhook-timestamp", "999999999999")
	if _, err := webhook.Verify(far, []byte(vectorBody), []webhook.Secret{secret}, 0); !errors.Is(err, webhook.ErrTooNew) {
		t.Errorf("the year 33658: %v", err)
	}
}

// Before, during and after a rotation.
// Shows: S4.20
func TestRotation(t *testing.T) {
	t.Parallel()
	old, replacement := webhook.NewSecret(), webhook.NewSecret()
	private, public := webhook.NewKeyPair()
	body := []byte(vectorBody)
	for _, row := range []struct {
		sign, verify []webhook.Secret
		want         error
	}{
		{[]webhook.Secret{old}, []webhook.Secret{old}, nil},
		{[]webhook.Secret{old}, []webhook.Secret{replacement, old}, nil},
		{[]webhook.Secret{replacement, old}, []webhook.Secret{old}, nil},
		{[]webhook.Secret{replacement, old}, []webhook.Secret{replacement}, nil},
		{[]webhook.Secret{private, old}, []webhook.Secret{public}, nil},
		{[]webhook.Secret{private, old}, []webhook.Secret{old}, nil},
		{[]webhook.Secret{private}, []webhook.Secret{old, public}, nil},
		{[]webhook.Secret{old}, []webhook.Secret{replacement}, webhook.ErrNoMatch}, // retired
		{[]webhook.Secret{old}, []webhook.Secret{public}, webhook.ErrNoMatch},
		{[]webhook.Secret{private}, []webhook.Secret{old}, webhook.ErrNoMatch},
	} {
		header, err := webhook.Sign(vectorID, time.Now(), body, row.sign...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := webhook.Verify(header, body, row.verify, 0); !errors.Is(err, row.want) {
			t.Errorf("signed by %v, verified by %v: %v", row.sign, row.verify, err)
		}
	}
}

func TestVerifyHeaders(t *testing.T) {
	t.Parallel()
	secret := parse(t, vectorSecret)
	good, err := webhook.Sign(vectorID, time.Now(), []byte(vectorBody), secret)
	if err != nil {
		t.Fatal(err)
	}
	stamp, signature := good.Get("webhook-timestamp"), good.Get("webhook-signature")
	for _, row := range []struct {
		name   string
		values []string
		want   error
	}{
		{"Webhook-Id", nil, webhook.ErrMissingHeader},
		{"Webhook-Id", []string{""}, webhook.ErrMissingHeader},
		{"Webhook-Id", []string{vectorID, vectorID}, webhook.ErrMalformed},
		{"Webhook-Id", []string{vectorID + " "}, webhook.ErrMalformed},
		{"Webhook-Id", []string{"ü"}, webhook.ErrMalformed},
		{"Webhook-Id", []string{strings.Repeat("a", 256)}, webhook.ErrMalformed},
		{"Webhook-Timestamp", nil, webhook.ErrMissingHeader},
		{"Webhook-Timestamp", []string{stamp, stamp}, webhook.ErrMalformed},
		{"Webhook-Timestamp", []string{"+" + stamp}, webhook.ErrMalformed},
		{"Webhook-Timestamp", []string{"0" + stamp}, webhook.ErrMalformed},
		{"Webhook-Timestamp", []string{stamp + ".0"}, webhook.ErrMalformed},
		{"Webhook-Timestamp", []string{"-1"}, webhook.ErrMalformed},
		{"Webhook-Timestamp", []string{"soon"}, webhook.ErrMalformed},
		{"Webhook-Timestamp", []string{strconv.FormatInt(time.Now().UnixMilli(), 10)}, webhook.ErrMalformed},
		{"Webhook-Timestamp", []string{"1" + strings.Repeat("0", 30)}, webhook.ErrMalformed},
		{"Webhook-Timestamp", []string{"0"}, webhook.ErrTooOld},
		{"Webhook-Signature", nil, webhook.ErrMissingHeader},
		{"Webhook-Signature", []string{signature, signature}, webhook.ErrMalformed},
		{"Webhook-Signature", []string{"v1"}, webhook.ErrMalformed},
		{"Webhook-Signature", []string{"v1,"}, webhook.ErrMalformed},
		{"Webhook-Signature", []string{"v1,*"}, webhook.ErrMalformed},
		{"Webhook-Signature", []string{strings.TrimRight(signature, "=")}, webhook.ErrMalformed},
		{"Webhook-Signature", []string{strings.Repeat(signature+" ", 33)}, webhook.ErrMalformed},
		{"Webhook-Signature", []string{strings.Repeat(signature+" ", 31) + signature}, nil},
		{"Webhook-Signature", []string{"junk  v1, " + signature}, nil},
		{"Webhook-Signature", []string{strings.Replace(signature, "v1,", "v2,", 1)}, webhook.ErrNoMatch},
		{"Webhook-Signature", []string{strings.Replace(signature, "v1,", "v1a,", 1)}, webhook.ErrNoMatch},
		{"Webhook-Signature", []string{strings.Replace(signature, "v1,", "V1,", 1)}, webhook.ErrNoMatch},
	} {
		header := good.Clone()
		header[row.name] = row.values
		_, err := webhook.Verify(header, []byte(vectorBody), []webhook.Secret{secret}, 0)
		var refused *webhook.VerifyError
		switch {
		case row.want == nil:
			if err != nil {
				t.Errorf("%s %q: %v", row.name, row.values, err)
			}
		case !errors.Is(err, row.want) || !errors.As(err, &refused) || refused.Header != row.name:
			t.Errorf("%s %q: %v, want %v", row.name, row.values, err, row.want)
		}
	}
}

func TestSignAndVerifyBadInput(t *testing.T) {
	t.Parallel()
	secret := webhook.NewSecret()
	_, public := webhook.NewKeyPair()
	for row, id := range map[string]string{"empty": "", "full stop": "a.b", "space": "a b", "line": "a\nb", "long": strings.Repeat("a", 256)} {
		_, err := webhook.Sign(id, time.Now(), nil, secret)
		refused(t, row, err, "id")
	}
	for row, secrets := range map[string][]webhook.Secret{"none": nil, "zero": {{}}, "public": {secret, public}, "many": make([]webhook.Secret, 9)} {
		_, err := webhook.Sign("a", time.Now(), nil, secrets...)
		refused(t, row, err, "Secrets")
		if row != "public" {
			_, err = webhook.Verify(http.Header{}, nil, secrets, 0)
			refused(t, row, err, "Secrets")
		}
	}
	for _, tolerance := range []time.Duration{-1, 1, 25 * time.Hour} {
		_, err := webhook.Verify(http.Header{}, nil, []webhook.Secret{secret}, tolerance)
		refused(t, fmt.Sprint(tolerance), err, "tolerance")
	}
	if header, err := webhook.Sign(strings.Repeat("a", 255), time.Now(), nil, secret); err != nil || len(header) != 3 {
		t.Errorf("%v, %v", header, err)
	}
}

// Whatever a request says, Verify neither panics nor takes what was not signed; and what is signed it takes.
func FuzzVerify(f *testing.F) {
	f.Add("msg_1", "1614265330", vectorSignature, []byte(vectorBody), int64(vectorTime))
	f.Add("msg.1", "+1", "v1,AAAA v1a,AAAA v1 ,", []byte(nil), int64(0))
	f.Add("", "99999999999999999999", strings.Repeat("v1,AA== ", 40), []byte{0xff}, int64(-1))
	f.Fuzz(func(t *testing.T, id, stamp, signature string, body []byte, second int64) {
		symmetric := webhook.NewSecret()
		private, public := webhook.NewKeyPair()
		secrets := []webhook.Secret{symmetric, public}
		header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {signature}}
		_, err := webhook.Verify(header, body, secrets, 24*time.Hour)
		var wrong *webhook.VerifyError
		if !errors.As(err, &wrong) {
			t.Fatalf("%v: %v", header, err)
		}
		signed, err := webhook.Sign(id, time.Unix(second, 0), body, symmetric, private)
		if err != nil {
			return
		}
		_, err = webhook.Verify(signed, body, secrets, 0)
		if now := time.Now().Unix(); second > now-200 && second < now+200 && err != nil {
			t.Fatalf("%v: %v", signed, err)
		}
		signed, err = webhook.Sign(id, time.Now(), body, symmetric, private)
		if err != nil {
			t.Fatal(err)
		}
		got, err := webhook.Verify(signed, body, secrets, 0)
		if err != nil || got.ID != id {
			t.Fatalf("%v: %+v, %v", signed, got, err)
		}
		if _, err = webhook.Verify(signed, append(body, 0), secrets, 0); !errors.Is(err, webhook.ErrNoMatch) {
			t.Fatalf("%v: another body: %v", signed, err)
		}
	})
}
