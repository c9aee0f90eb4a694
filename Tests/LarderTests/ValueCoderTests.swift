import Foundation
import Larder
import Testing

/// The keys that codecs learn, and the errors that stores report when values cannot be decoded.
@Suite struct ValueCoderTests {
  /// A codec that writes the key of the entry in front of each value, and refuses to decode a value under another key.
  private struct KeyedCodec: Codec {
    struct WrongKey: StoreErrorConvertible {
      var storeErrorCode: StoreError.Code { .conflict }
    }

    var name: String { "keyed" }
    var format: CodecFormat { .json }

    func encode(_ value: String, into bytes: inout [UInt8], context: ValueContext) throws {
      try JSONCodec<[String]>().encode([context.key?.string ?? "", value], into: &bytes)
    }

    func decode(_ bytes: RawSpan, context: ValueContext) throws -> String {
      let parts = try JSONCodec<[String]>().decode(bytes)
      guard parts.count == 2, parts[0] == context.key?.string ?? "" else { throw WrongKey() }
      return parts[1]
    }
  }

  @Test func `a value is decoded with the key of its encoding`() async throws {
    let bytes = MemoryStore<[UInt8]>()
    let store = bytes.typed(String.self, prefix: "t/", codec: KeyedCodec())
    try await store.setValue("1", forKey: "a")
    _ = try await store.update("b") { $0 = "2" }
    #expect(try await store.values(forKeys: ["a", "b"]) == ["1", "2"])
    #expect(try await store.entries(in: .all, limit: 9).map(\.value) == ["1", "2"])
    // A value that was moved to another key.
    let moved = try #require(try bytes.value(forKey: "t/a"))
    try bytes.apply([.set("t/c", moved)])
    do {
      _ = try await store.value(forKey: "c")
      Issue.record("the value was decoded under another key")
    } catch let error as StoreError {
      #expect(error.code == .conflict)
      #expect(error.key == "c")
      #expect(error.isValueUnreadable)
    }
    // A walk returns the sound entries first, and a verification names the other.
    var seen: [StoreKey] = []
    do {
      for try await entry in store.entries() { seen.append(entry.key) }
      Issue.record("the walk did not report the value")
    } catch {
      #expect(seen == ["a", "b"])
    }
    #expect(try await AnyDataStore(store).verify().findings.map(\.key) == ["c"])
  }

  @Test(arguments: [
    ("{\"name\":1}", StoreError.Code.undecodable), ("{}", .undecodable), ("\"x\"", .undecodable),
    ("{\"name\":", .corrupted),
  ]) func `the error of a decoder decides the code`(_ stored: String, _ code: StoreError.Code) async throws {
    struct User: Codable, Sendable { var name: String }
    let bytes = MemoryStore<[UInt8]>()
    try bytes.apply([.set("k", Array(stored.utf8))])
    let store = bytes.typed(User.self, codec: .json())
    do {
      _ = try await store.value(forKey: "k")
      Issue.record("the value was decoded")
    } catch let error as StoreError {
      #expect(error.code == code)
      #expect(error.isValueUnreadable)
    }
  }
}
