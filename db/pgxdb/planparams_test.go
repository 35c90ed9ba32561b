package pgxdb

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb/internal/gen"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	token  = []byte("0123456789abcdef")
	tokens = slices.Concat(token, token)
	ids    = []int64{100, 200}
	two    = []string{"", ""}
	hour   = time.Hour.Microseconds()
)

// planParams are the arguments with which each statement is explained.
var planParams = map[string]any{
	"Enqueue": gen.EnqueueParams{
		Tenants: two, Consumers: []string{"c", "c"}, Targets: []string{"g", "g"}, Kinds: []string{"k", "k"}, Keys: []string{"a", "b"}, OrderKeys: two,
		Priorities: []int16{0, 0}, Digests: [][]byte{make([]byte, 32), make([]byte, 32)}, Metadatas: two, Payloads: [][]byte{{1}, {2}},
		SourcePositions: []int64{0, 0}, SourceEventIds: two, MaxAges: []int64{0, hour}, DueAts: []time.Time{db.Never, db.Never}, Delays: []int64{0, 0},
	},
	"EnqueueLeased": gen.EnqueueLeasedParams{
		Tenants: two, Consumers: []string{"c", "c"}, Targets: []string{"g", "g"}, Kinds: []string{"k", "k"}, Keys: []string{"a", "b"}, OrderKeys: two,
		Priorities: []int16{0, 0}, Digests: [][]byte{make([]byte, 32), make([]byte, 32)}, Metadatas: two, Payloads: [][]byte{{1}, {2}},
		SourcePositions: []int64{0, 0}, SourceEventIds: two, MaxAges: []int64{0, hour}, DueAts: []time.Time{db.Never, db.Never}, Delays: []int64{0, 0},
		Leases: []int64{0, hour}, Workers: []int64{0, 1}, Token: token,
	},
	"FindKeys": gen.FindKeysParams{Tenants: []string{"t1", "t2"}, Consumers: []string{"c", "c"}, Keys: []string{"key1", "key2"}, Digests: [][]byte{token, token}},
	"DueLanes": gen.DueLanesParams{
		Consumers: []string{"c", "c"}, Targets: []string{"g", "g"}, Kinds: []string{"k0", "k1"}, AfterTenants: two,
		AfterPriorities: []int32{db.FirstPriority, db.FirstPriority}, AllTenants: true, MaxRows: 1000,
	},
	"LeaseDue": gen.LeaseDueParams{
		Kinds: []string{"k0", "k1"}, Tenants: []string{"t1", "t2"}, Priorities: []int16{0, 1}, AfterDues: []time.Time{db.Never, db.Never},
		AfterIds: []int64{0, 0}, AttemptLimits: []int32{12, 12}, MaxAges: []int64{24 * hour, 0}, AllTenants: true, Consumer: "c", Target: "g", Lease: hour / 120,
		Examine: 1000, LongestLease: hour, Quota: 100, MaxRows: 100, Token: token, Worker: 1,
	},
	"LeaseSuccessors": gen.LeaseSuccessorsParams{
		Tenants: []string{"t0", "t0"}, OrderKeys: []string{"o0", "o20"}, Kinds: []string{"k0", "k1"}, AttemptLimits: []int32{12, 12},
		MaxAges: []int64{24 * hour, 0}, Consumer: "c", Target: "g", AllTenants: true, Lease: hour / 120, LongestLease: hour, MaxRows: 100, Token: token, Worker: 1,
	},
	"AppendEvents": gen.AppendEventsParams{
		Tenants: two, Streams: two, Types: []string{"x", "y"}, EventIds: []string{"a", "b"}, Digests: [][]byte{make([]byte, 32), make([]byte, 32)},
		Metadatas: two, Payloads: [][]byte{{1}, {2}},
	},
	"FindEvents": gen.FindEventsParams{Tenants: []string{"t1", "t2"}, EventIds: []string{"e1", "e2"}, Digests: [][]byte{token, token}},
	"SaveReader": gen.SaveReaderParams{
		Name: "r", Incarnation: strings.Repeat("0", 32), TransactionID: 2, Position: 2, Digest: make([]byte, 32), FromTransactionID: 1, FromPosition: 1,
	},
	"ReadEvents": gen.ReadEventsParams{
		Incarnation: strings.Repeat("0", 32), AfterTransactionID: 50, AfterPosition: 500, AfterDigest: make([]byte, 32), Examine: 1000, MaxRows: 100,
		MaxBytes: 4 << 20, AllTenants: true,
	},
	"ReadSource":   gen.ReadSourceParams{Position: 500, EventID: "e500", Tenant: "t0"},
	"FindReaders":  gen.FindReadersParams{AllNames: true, MaxRows: 100},
	"RemoveReader": gen.RemoveReaderParams{Name: "r"},
	"PurgeEvents":  gen.PurgeEventsParams{SchemaName: "outbox", Keep: hour, MaxRows: 1000},
	"PurgeClaims":  gen.PurgeClaimsParams{SchemaName: "outbox", Keep: hour, AfterAt: db.Never, MaxRows: 1000, AllTenants: true},
	"Claim":        gen.ClaimParams{Scope: "s", Key: "k", Digest: make([]byte, 32), Token: token, Hold: hour},
	"TakeClaim":    gen.TakeClaimParams{Tenant: "t1", Scope: "s", Key: "key1", Digest: make([]byte, 32), Token: token, Hold: hour},
	"EndClaim":     gen.EndClaimParams{Tenant: "t1", Scope: "s", Key: "key1", Token: token, State: db.ClaimCompleted, Result: []byte{1}},
	"RecordClaim":  gen.RecordClaimParams{Scope: "s", Key: "k", Digest: make([]byte, 32), State: db.ClaimCompleted},
	"FindClaims": gen.FindClaimsParams{
		Tenants: []string{"t1", "t2"}, Scopes: []string{"s", "s"}, Keys: []string{"key1", "key2"}, Digests: [][]byte{make([]byte, 32), make([]byte, 32)},
	},
	"AddBatch": gen.AddBatchParams{
		Consumer: "c", Target: "g", Kind: "k", Key: "b", Digest: make([]byte, 32), CompleteDigest: []byte{}, CompletePayload: []byte{},
	},
	"FindBatch":       gen.FindBatchParams{Tenant: "t1", Consumer: "c", Key: "key1", AllTenants: true},
	"AddBatchRows":    gen.AddBatchRowsParams{BatchID: 1, AllTenants: true, Numbers: []int32{1 << 30, 1<<30 + 1}, MessageIds: []int64{0, 0}, Reasons: []string{"r", "r"}},
	"FindBatchRows":   gen.FindBatchRowsParams{BatchID: 1, AllTenants: true, Numbers: []int32{1, 2}},
	"SealBatch":       gen.SealBatchParams{ID: 1, AllTenants: true},
	"CountBatch":      gen.CountBatchParams{ID: 1, AllTenants: true, Detail: true},
	"ListBatches":     gen.ListBatchesParams{AllTenants: true, BeforeID: 1 << 40, Examine: 1000, MaxRows: 100},
	"ListBatchRows":   gen.ListBatchRowsParams{BatchID: 1, AllTenants: true, Fate: db.AnyFate, MaxRows: 100},
	"PurgeBatches":    gen.PurgeBatchesParams{SchemaName: "outbox", Keep: hour, AllTenants: true, MaxRows: 1000},
	"Renew":           gen.RenewParams{Ids: ids, Tokens: tokens, Lease: hour / 120, LongestLease: hour},
	"Release":         gen.ReleaseParams{Ids: ids, Tokens: tokens, Unsures: []bool{false, true}},
	"SettleDelivered": gen.SettleDeliveredParams{Ids: ids, Tokens: tokens, Consumer: "c", Target: "g", AllTenants: true, Results: two},
	"SettleDropped":   gen.SettleDroppedParams{Ids: ids, Tokens: tokens, Consumer: "c", Target: "g", AllTenants: true},
	"SettleRetry": gen.SettleRetryParams{
		Ids: ids, Tokens: tokens, Consumer: "c", Target: "g", AllTenants: true, MaxAges: []int64{hour, 0}, Delays: []int64{hour, hour},
		Unsures: []bool{false, true}, LastErrors: []string{"e", "f"}, Reasons: []string{"e", "f"},
	},
	"SettleDead": gen.SettleDeadParams{
		Ids: ids, Tokens: tokens, Consumer: "c", Target: "g", AllTenants: true, Causes: []string{"permanent", "moot"}, Reasons: []string{"e", "f"},
	},
	"SettleParked":     gen.SettleParkedParams{Ids: ids, Tokens: tokens, Consumer: "c", Target: "g", AllTenants: true, LastErrors: []string{"e", "f"}},
	"FindFates":        gen.FindFatesParams{Ids: ids, AllTenants: true},
	"CancelOpen":       gen.CancelOpenParams{Ids: ids, AllTenants: true, Actor: "a", Reason: "r"},
	"ReplayDead":       gen.ReplayDeadParams{Ids: ids, Scope: []string{"t1"}, Actor: "a", Reason: "r"},
	"ResolveSettled":   gen.ResolveSettledParams{Ids: ids, AllTenants: true, Outcome: "delivered", Actor: "a", Reason: "r"},
	"ResolveRetry":     gen.ResolveRetryParams{Ids: ids, AllTenants: true, Actor: "a", Reason: "r"},
	"PauseLane":        gen.PauseLaneParams{Consumer: "c", Target: "*", Kind: "*", Tenant: "*", Actor: "a", Reason: "r"},
	"ResumeLane":       gen.ResumeLaneParams{Consumer: "c", Target: "*", Kind: "*", Tenant: "*", Actor: "a", Reason: "r"},
	"ReleaseWorker":    gen.ReleaseWorkerParams{Worker: "w", Examine: 1000, AllTenants: true, Actor: "a", Reason: "r"},
	"UnblockKey":       gen.UnblockKeyParams{Consumer: "c", Target: "g", OrderKey: "o0", Actor: "a", Reason: "r"},
	"PurgeDelivered":   gen.PurgeDeliveredParams{SchemaName: "outbox", Scope: []string{"t1"}, AfterID: 10, MaxRows: 1000, Keep: hour},
	"PurgeUndelivered": gen.PurgeUndeliveredParams{SchemaName: "outbox", Scope: []string{"t1"}, Outcome: "dead", Keep: hour, MaxRows: 1000},
	"ExpireUnleased":   gen.ExpireUnleasedParams{SchemaName: "outbox", AllTenants: true, AfterID: 10, Examine: 1000, Grace: 24 * hour},
	"PurgeAudit":       gen.PurgeAuditParams{SchemaName: "outbox", AllTenants: true, AfterID: 10, MaxRows: 1000, Keep: hour},
	"CountOld":         gen.CountOldParams{Scope: []string{"t1"}, AfterID: 10, MaxRows: 1000, KeepDelivered: hour, KeepDead: hour},
	"CountOverdue":     gen.CountOverdueParams{AllTenants: true, AfterID: 10, Examine: 1000, Grace: hour},
	"PurgeWorkers":     gen.PurgeWorkersParams{Keep: hour, MaxRows: 1000},
	"ShowMessage":      gen.ShowMessageParams{ID: 100, AllTenants: true},
	"ListOpen":         gen.ListOpenParams{AfterID: 10, Examine: 1000, AllTenants: true, Consumer: "c", MaxRows: 100},
	"ListUndelivered":  gen.ListUndeliveredParams{Outcome: "dead", BeforeAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), Examine: 1000, AllTenants: true, MaxRows: 100},
	"ListDelivered":    gen.ListDeliveredParams{BeforeID: 1 << 60, Examine: 1000, AllTenants: true, MaxRows: 100},
	"ListPauses":       gen.ListPausesParams{AllTenants: true},
	"CountLanes":       gen.CountLanesParams{AfterPriority: db.FirstPriority, Cap: 1000, AllTenants: true, MaxRows: 1000},
	"CountParked":      gen.CountParkedParams{AllTenants: true, Cap: 1000},
	"CountUndelivered": gen.CountUndeliveredParams{Cap: 1000},
	"ReadHealth":       gen.ReadHealthParams{SchemaName: "outbox"},
	"AuditMessages":    gen.AuditMessagesParams{AfterID: 10, Examine: 1000},
	"ListHeads":        gen.ListHeadsParams{Examine: 1000, Age: hour / 12},
	"ListReaders":      gen.ListReadersParams{MaxRows: 1000},
	"ListStuckBatches": gen.ListStuckBatchesParams{Age: hour, Examine: 1000},
	"ListLapsedClaims": gen.ListLapsedClaimsParams{Age: hour, MaxRows: 1000},
	"ReadSurroundings": gen.ReadSurroundingsParams{SchemaName: "outbox"},
	"MoveReserve":      gen.MoveReserveParams{SchemaName: "outbox", Message: 10, Event: 10},
	"MoveStream":       gen.MoveStreamParams{Stream: strings.Repeat("0", 32), PurgedDigest: []byte{}},
	"MoveIn":           gen.MoveInParams{Messages: "[]", Queue: "[]", Settlements: "[]", OrderLeases: "[]", Pauses: "[]", Audits: "[]", Events: "[]", Readers: "[]", Claims: "[]"},
	"MoveCompare": gen.MoveCompareParams{
		AfterID: 10, Upto: 510, Messages: "[]", Queue: "[]", Settlements: "[]", OrderLeases: "[]", Pauses: "[]", Audits: "[]",
		Events: "[]", Readers: "[]", Incarnations: "[]", Claims: "[]",
	},
	"MoveResume":     gen.MoveResumeParams{Reason: "r"},
	"RegisterWorker": gen.RegisterWorkerParams{Name: "w", Host: "h"},
	"TouchWorkers":   gen.TouchWorkersParams{Ids: ids},
	"AddCredential": gen.AddCredentialParams{
		Name: "w", Salt: token, Hash: make([]byte, 32), Iterations: 1000, Actor: "a", Reason: "r", Consumers: []string{"c", "*"}, Tenants: two,
	},
	"RevokeCredential": gen.RevokeCredentialParams{Name: "w", Actor: "a", Reason: "r"},
	"FindCredential":   gen.FindCredentialParams{Name: "w"},
	"ListCredentials":  gen.ListCredentialsParams{MaxRows: 1000},
	"CheckRole":        gen.CheckRoleParams{SchemaName: "outbox"},
	"Notify":           gen.NotifyParams{Channel: "c"},
}

// recorder keeps what a generated method sends and answers with an error.
type recorder struct {
	sql  string
	args []any
}

var errRecorded = errors.New("recorded")

func (r *recorder) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	r.sql, r.args = sql, args
	return pgconn.CommandTag{}, errRecorded
}

func (r *recorder) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	r.sql, r.args = sql, args
	return nil, errRecorded
}

func (r *recorder) QueryRow(context.Context, string, ...any) pgx.Row { panic("no statement is :one") }

// trimmed is the statement without its end, as PREPARE wants it.
func trimmed(sql string) string { return strings.TrimSuffix(strings.TrimSpace(sql), ";") }

func literals(args []any) string {
	list := make([]string, len(args))
	for i, arg := range args {
		list[i] = literal(arg)
	}
	return strings.Join(list, ", ")
}

// literal writes a value as SQL, since EXECUTE takes no parameters.
func literal(value any) string {
	switch v := value.(type) {
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case []byte:
		return `'\x` + hex.EncodeToString(v) + "'"
	case time.Time:
		return "'" + v.Format("2006-01-02 15:04:05.999999Z07:00") + "'"
	}
	if slice := reflect.ValueOf(value); slice.Kind() == reflect.Slice {
		elements := make([]string, slice.Len())
		for i := range elements {
			elements[i] = literal(slice.Index(i).Interface())
		}
		if len(elements) == 0 {
			return "'{}'"
		}
		array := "ARRAY[" + strings.Join(elements, ", ") + "]"
		if _, ok := value.([][]byte); ok {
			array += "::bytea[]"
		}
		if _, ok := value.([]time.Time); ok {
			array += "::timestamptz[]"
		}
		return array
	}
	return fmt.Sprint(value)
}
