import Foundation
import LarderCBOR
import Testing

/// An error names the value, one cause and the coding path.
@Suite struct ErrorMessageTests {
  private struct Scripted: Codable, Sendable {
    static nonisolated(unsafe) var kept: (any Encoder)?
    let script: @Sendable (any Encoder) throws -> Void
    init(_ script: @escaping @Sendable (any Encoder) throws -> Void) { self.script = script }
    init(from decoder: any Decoder) throws { script = { _ in } }
    func encode(to encoder: any Encoder) throws { try script(encoder) }
  }

  private func error(_ script: @escaping @Sendable (any Encoder) throws -> Void) throws -> (Any, String, String) {
    struct Outer: Codable, Sendable { var fields: [String: [Scripted]] }
    let error = try #require(throws: EncodingError.self) {
      try Coding.encoded(Outer(fields: ["x": [Scripted(script)]]))
    }
    guard case .invalidValue(let value, let context) = error else { throw error }
    return (value, context.codingPath.map(\.stringValue).joined(separator: "/"), context.debugDescription)
  }

  @Test func `another container`() throws {
    let (value, path, text) = try error { encoder in
      _ = encoder.unkeyedContainer()
      var container = encoder.container(keyedBy: SampleKey.self)
      try container.encode(7, forKey: .a)
    }
    #expect(value as? Int == 7)
    #expect(path == "fields/x/Index 0")
    #expect(text == "an encoder must have either a keyed or an unkeyed container, not both")
    // The container is an error even if nothing is written to it.
    #expect(
      try error { encoder in
        _ = encoder.unkeyedContainer()
        _ = encoder.container(keyedBy: SampleKey.self)
      }.2 == text)
  }

  @Test func `a container after a single value`() throws {
    let (value, path, text) = try error { encoder in
      var single = encoder.singleValueContainer()
      try single.encode(1)
      var container = encoder.unkeyedContainer()
      try container.encode("x")
    }
    #expect(value as? String == "x")
    #expect(path == "fields/x/Index 0")
    #expect(text == "an encoder that has encoded a single value must not have another container")
  }

  @Test func `two values`() throws {
    let (value, path, text) = try error { encoder in
      var single = encoder.singleValueContainer()
      try single.encode(1)
      try single.encode(2)
    }
    #expect(value is Scripted)
    #expect(path == "fields/x/Index 0")
    #expect(text == "a value must be encoded as one data item, not 2")
  }

  @Test func `duplicate key`() throws {
    let (value, path, text) = try error { encoder in
      var container = encoder.container(keyedBy: SampleKey.self)
      try container.encode(1, forKey: .a)
      try container.encode(2, forKey: .a)
    }
    #expect(value is Scripted)
    #expect(path.hasPrefix("fields/x/Index 0"))
    #expect(text == "the map contains the key \"a\" twice")
  }

  @Test func `too deep`() throws {
    let (value, path, text) = try error { encoder in
      var array = encoder.unkeyedContainer()
      for _ in 0..<600 { array = array.nestedUnkeyedContainer() }
      try array.encode(Level.low)
    }
    #expect(value is Level)
    #expect(path.hasPrefix("fields/x/Index 0/Index 0/Index 0"))
    #expect(text == "the value nests more than 512 levels deep")
  }

  /// The key then has no value, but that is not the cause.
  @Test func `too deep under a key`() throws {
    let (value, path, text) = try error { encoder in
      var map = encoder.container(keyedBy: SampleKey.self)
      for _ in 0..<600 { map = map.nestedContainer(keyedBy: SampleKey.self, forKey: .a) }
    }
    #expect(value is Scripted)
    #expect(path.hasPrefix("fields/x/Index 0/a/a"))
    #expect(text == "the value nests more than 512 levels deep")
  }

  private enum Level: String, Codable { case low }

  @Test func `an outer container`() throws {
    let (value, path, text) = try error { encoder in
      Scripted.kept = encoder
      var container = encoder.container(keyedBy: SampleKey.self)
      try container.encode(
        Scripted { _ in
          var outer = try #require(Scripted.kept).container(keyedBy: SampleKey.self)
          try outer.encode(8, forKey: .b)
        }, forKey: .a)
    }
    #expect(value as? Int == 8)
    #expect(path == "fields/x/Index 0")
    #expect(text == "a container must not be written to while a value inside it is being encoded")
  }

  @Test func `after the end`() throws {
    nonisolated(unsafe) var kept: (any UnkeyedEncodingContainer)?
    _ = try Coding.encoded(Scripted { kept = $0.unkeyedContainer() })
    let error = #expect(throws: EncodingError.self) { try kept?.encode("late") }
    guard case .invalidValue(let value, let context)? = error else { return }
    #expect(value as? String == "late")
    #expect(context.debugDescription == "the container is already finished")
  }
}
