// Package batch runs one job of many rows: each row is a message that an ordinary sender performs, with a fate of its own, and the job knows at any
// moment how many of its rows have which.
//
// Rows says what a row is and when it is a good one. Batches.Create reads rows from a channel or from lines of JSON, checks each in phases, and records it
// as an effect or as rejected with the reason; killed and run again on the same input it goes on where it was. Handler turns a function of one row
// into a sender's handler: it returns the identifier of what it made, or an error, and the sender records which. When the last row of a sealed batch has its
// end, the database itself records the effect that follows it (Spec.OnComplete), in the transaction of that end.
//
// Every count is an aggregate over the rows (Batches.Progress), never a number that somebody adds to. Batches.Watch and ProgressHandler tell it at a bounded
// rate. Batches.Cancel ends the open rows; Batches.Rerun brings the dead ones back and leaves the others alone.
//
// # What it does not do
//
// It performs nothing: without a sender for the consumer the rows stay open. Rows have no order among each other. A row that was rejected stays so; mend
// the input and give the batch another key.
package batch
