package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

const (
	batchWarning = time.Hour // for which a batch is filled without its seal
	openBatches  = 1000      // that are looked at
)

// batches looks for those that nobody will complete.
func (d *doctor) batches(ctx context.Context) ([]finding, error) {
	rows, err := d.store.ListStuckBatches(ctx, db.ListStuckBatchesParams{Age: batchWarning.Microseconds(), Examine: openBatches})
	if err != nil {
		return nil, err
	}
	var unsealed, broken []string
	for _, row := range rows {
		detail := fmt.Sprintf("%d, %s of %s, tenant %s, begun %s ago", row.ID, row.Key, row.Consumer, orDash(row.Tenant), age(row.Now.Sub(row.CreatedAt)))
		if row.Broken {
			broken = append(broken, detail)
		} else {
			unsealed = append(unsealed, detail)
		}
	}
	counted := func(n int) string {
		if n == 1 {
			return "1 batch"
		}
		return thousands(int64(n)) + " batches"
	}
	var findings []finding
	if len(unsealed) > 0 {
		findings = append(findings, found("batches", levelWarning, "%s not sealed for %v: create them again with the same rows, which goes on, or cancel them",
			counted(len(unsealed)), batchWarning).with(some(unsealed)))
	}
	if len(broken) > 0 {
		findings = append(findings, found("batches", levelCritical, "%s sealed and without open rows, but not completed: triggers were disabled, or rows written by hand",
			counted(len(broken))).with(some(broken)))
	}
	if findings == nil {
		findings = []finding{found("batches", levelOK, "all are sealed within %v, and completed with their last row", batchWarning)}
	}
	return findings, nil
}
