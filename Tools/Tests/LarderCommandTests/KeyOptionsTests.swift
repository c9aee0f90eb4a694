import ArgumentParser
import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct KeyOptionsTests {
  private func options(_ arguments: String...) throws -> KeyOptions { try KeyOptions.parse(arguments) }

  @Test func `a key is its text or its digits`() throws {
    #expect(try options().key("é") == StoreKey("é"))
    #expect(try options().key("61") == StoreKey("61"))
    #expect(try options("--key-hex").key("61") == "a")
  }

  @Test func `a key has one to 511 bytes`() throws {
    #expect(throws: (any Error).self) { try options().key("") }
    #expect(throws: (any Error).self) { try options("--key-hex").key("") }
    #expect(throws: (any Error).self) { try options("--key-hex").key("6") }
    #expect(try options().key(String(repeating: "k", count: 511)).count == 511)
    #expect(throws: (any Error).self) { try options().key(String(repeating: "k", count: 512)) }
  }

  private func range(_ arguments: String...) throws -> KeyRange { try RangeOptions.parse(arguments).range() }

  @Test func `bounds are intersected`() throws {
    #expect(try range() == .all)
    #expect(try range("--prefix", "b") == KeyRange(from: "b", upTo: "c"))
    #expect(try range("--prefix", "b", "--from", "a", "--to", "z") == KeyRange(from: "b", upTo: "c"))
    #expect(try range("--prefix", "b", "--from", "b1", "--to", "b3") == KeyRange(from: "b1", upTo: "b3"))
    #expect(try range("--from", "b1") == KeyRange(from: "b1", upTo: nil))
    #expect(try range("--to", "b1") == KeyRange(from: "", upTo: "b1"))
    #expect(try range("--prefix", "b", "--from", "c").isEmpty)
    #expect(try range("--key-hex", "--prefix", "ff", "--from", "ff80").lowerBound.bytes == [0xFF, 0x80])
  }

  @Test(arguments: ["--prefix", "--from", "--to"]) func `an empty bound is refused`(_ option: String) {
    #expect(throws: (any Error).self) { try range(option, "") }
  }
}
