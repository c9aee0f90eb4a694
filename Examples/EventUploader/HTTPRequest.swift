import Foundation

/// As much of an HTTP/1.1 request as has come: its head and its body.
struct HTTPRequest {
  private static let limit = 16 << 20
  private static let endOfHead = Data("\r\n\r\n".utf8)

  /// What stands there makes no sense, or is too long.
  struct Malformed: Error {}

  private var bytes = Data()
  private var head: (length: Int, bodyLength: Int, expectsContinue: Bool)?

  /// Whether the other side waits for a word before it sends the body; it says so once.
  private(set) var awaitsContinue = false

  /// Adds bytes as they come.
  ///
  /// - Returns: The body, once all of it is there.
  /// - Throws: ``Malformed``.
  mutating func append(_ more: [UInt8]) throws -> Data? {
    bytes += more
    guard bytes.count <= Self.limit else { throw Malformed() }
    awaitsContinue = false
    if head == nil, let end = bytes.firstRange(of: Self.endOfHead) {
      let parsed = try Self.parse(bytes[..<end.lowerBound])
      head = (end.upperBound, parsed.bodyLength, parsed.expectsContinue)
      awaitsContinue = parsed.expectsContinue && bytes.count < end.upperBound + parsed.bodyLength
    }
    guard let head, bytes.count >= head.length + head.bodyLength else { return nil }
    return Data(bytes[head.length..<head.length + head.bodyLength])
  }

  private static func parse(_ head: Data) throws -> (bodyLength: Int, expectsContinue: Bool) {
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
    guard lines.first?.hasPrefix("POST ") == true else { throw Malformed() }
    var fields: [String: String] = [:]
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { throw Malformed() }
      fields[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
    }
    guard let length = fields["content-length"].flatMap({ Int($0) }), (0...limit).contains(length) else {
      throw Malformed()
    }
    return (length, fields["expect"]?.lowercased() == "100-continue")
  }
}
