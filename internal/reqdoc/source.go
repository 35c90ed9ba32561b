package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const module = "github.com/fencepost-go/fencepost/"

// A test is one whose comment has a line Shows.
type test struct {
	name, file string
	shows      []string
	asserts    bool
}

// findings are what a tree's tests say.
type findings struct {
	tests []test
	stray []string // what is said where no test is
}

// A function is a declaration in a file of tests or in a package that helps them.
type function struct {
	*ast.FuncDecl
	dir, file string
	imports   map[string]string // name to folder, of this module's packages
}

// read parses all tests under a root and what helps them.
func read(root fs.FS) (findings, error) {
	var found findings
	functions := map[string][]function{} // by folder and name, methods of all types together
	helping := map[string]bool{}         // folders of packages that import testing outside of their tests
	shown := map[string]bool{}           // positions of the comments that belong to a test
	files := token.NewFileSet()
	sources := map[string]*ast.File{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		source, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		sources[name] = source
		for _, imported := range source.Imports {
			helping[path.Dir(name)] = helping[path.Dir(name)] || imported.Path.Value == `"testing"` && !strings.HasSuffix(name, "_test.go")
		}
		return nil
	})
	if err != nil {
		return findings{}, err
	}
	for name, source := range sources {
		dir := path.Dir(name)
		if !strings.HasSuffix(name, "_test.go") && !helping[dir] {
			continue
		}
		imports := importsOf(source)
		for _, declaration := range source.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Body != nil {
				key := dir + "." + f.Name.Name
				functions[key] = append(functions[key], function{f, dir, name, imports})
			}
		}
	}
	for _, same := range functions {
		for _, f := range same {
			shows := showsOf(f.Doc)
			if shows == nil || !isTest(f.FuncDecl) {
				continue
			}
			shown[files.Position(f.Doc.Pos()).String()] = true
			found.tests = append(found.tests, test{f.Name.Name, f.file, shows, asserts(f, functions, map[*ast.FuncDecl]bool{})})
		}
	}
	for _, source := range sources {
		for _, group := range source.Comments {
			if at := files.Position(group.Pos()).String(); showsOf(group) != nil && !shown[at] {
				found.stray = append(found.stray, at+": Shows stands above no test")
			}
		}
	}
	slices.Sort(found.stray)
	slices.SortFunc(found.tests, func(a, b test) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.name, b.name)) })
	return found, nil
}

func importsOf(source *ast.File) map[string]string {
	imports := map[string]string{}
	for _, imported := range source.Imports {
		if dir, ours := strings.CutPrefix(strings.Trim(imported.Path.Value, `"`), module); ours {
			imports[path.Base(dir)] = dir
		}
	}
	return imports
}

// showsOf returns the ids of a comment's Shows lines, nil without one.
func showsOf(comment *ast.CommentGroup) []string {
	var ids []string
	if comment == nil {
		return nil
	}
	for _, line := range comment.List {
		if list, ok := strings.CutPrefix(line.Text, "// Shows:"); ok {
			ids = append(ids, strings.Fields(list)...)
		}
	}
	return ids
}

// isTest tells the functions that go test runs, and those of the conformance suite.
func isTest(f *ast.FuncDecl) bool {
	if f.Recv != nil || f.Type.Results != nil || len(f.Type.Params.List) != 1 {
		return false
	}
	pointer, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	switch of := pointer.X.(type) {
	case *ast.Ident:
		return of.Name == "fixture"
	case *ast.SelectorExpr:
		return strings.HasPrefix(f.Name.Name, "Test") && of.Sel.Name == "T" || strings.HasPrefix(f.Name.Name, "Fuzz") && of.Sel.Name == "F"
	}
	return false
}

var failing = []string{"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"}

// asserts says whether a test can fail by its own doing: in its body, or in a check that it names.
func asserts(f function, functions map[string][]function, seen map[*ast.FuncDecl]bool) bool {
	if seen[f.FuncDecl] {
		return false
	}
	seen[f.FuncDecl] = true
	yes := false
	ast.Inspect(f.Body, func(node ast.Node) bool {
		var key string
		switch n := node.(type) {
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains(failing, s.Sel.Name) && (len(n.Args) > 0 || strings.HasPrefix(s.Sel.Name, "Fail")) {
				of, named := s.X.(*ast.Ident)
				yes = yes || !named || of.Name != "fmt" && of.Name != "log" && of.Name != "slog"
			}
			return !yes
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				key = f.imports[of.Name] + "." + n.Sel.Name
			}
		case *ast.Ident:
			key = f.dir + "." + n.Name
		}
		for _, called := range functions[key] {
			yes = yes || checks(called.Type) && asserts(called, functions, seen)
		}
		return !yes
	})
	return yes
}

// checks tells helpers that look at something from those that set it up, which fail only when they cannot: one that returns something is
// there to give it, and one that takes a function of something, such as func(*bench), is there to run that.
func checks(f *ast.FuncType) bool {
	for _, parameter := range f.Params.List {
		if body, ok := parameter.Type.(*ast.FuncType); ok && len(body.Params.List) > 0 && body.Results == nil {
			return false
		}
	}
	return f.Results == nil
}
