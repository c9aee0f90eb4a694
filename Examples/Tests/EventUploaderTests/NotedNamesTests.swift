import ExampleSupport
import Foundation
import Testing

@testable import EventUploader

@Suite("Names that survive the process")
struct NotedNamesTests {
  @Test func `Names are read again without duplicates, and others are appended`() async throws {
    try await TemporaryFolder.with { folder in
      let path = "\(folder)/names"
      var names = try NotedNames(path: path)
      #expect(names.names.isEmpty)
      let first = try names.note(["a/1", "b", "a/1"])
      let second = try names.note(["b"])
      #expect(first == 2 && second == 0)
      var again = try NotedNames(path: path)
      #expect(again.names == ["a/1", "b"])
      let third = try again.note(["b", "c"])
      #expect(third == 1)
      #expect(try NotedNames(path: path).names == ["a/1", "b", "c"])
    }
  }

  @Test func `A partial line of a killed process is not a name, and does not spoil the next one`() async throws {
    try await TemporaryFolder.with { folder in
      let path = "\(folder)/names"
      for left in ["a\nb\nc", "a\nb\n", "c"] {
        try Data(left.utf8).write(to: URL(fileURLWithPath: path))
        var names = try NotedNames(path: path)
        let whole: Set = left == "c" ? [] : ["a", "b"]
        #expect(names.names == whole)
        try names.note(["d"])
        #expect(try NotedNames(path: path).names == whole.union(["d"]))
      }
    }
  }
}
