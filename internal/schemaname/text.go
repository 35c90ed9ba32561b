package schemaname

import "sync"

// A Text serves the statements of one schema: it swaps the schema's name into each constant text once. It is safe for concurrent use;
// copies share their memory.
type Text struct {
	schema  string
	swapped *sync.Map // constant text → text for this schema
}

// NewText validates the name; "" means Default.
func NewText(name string) (Text, error) {
	if name == "" {
		name = Default
	}
	if err := Validate(name); err != nil {
		return Text{}, err
	}
	return Text{schema: name, swapped: new(sync.Map)}, nil
}

// Schema is the schema's name.
func (t Text) Schema() string { return t.schema }

// Of gives the text for this schema. Only constant texts may be passed, since each is kept.
func (t Text) Of(sql string) string {
	if t.schema == Default {
		return sql
	}
	if text, ok := t.swapped.Load(sql); ok {
		return text.(string)
	}
	text := Swap(sql, t.schema)
	t.swapped.Store(sql, text)
	return text
}
