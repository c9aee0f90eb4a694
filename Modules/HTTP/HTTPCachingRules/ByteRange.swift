#if HTTPCache
/// A range of bytes that a request asks for (RFC 9110, section 14.1.2).
enum ByteRange: Sendable, Equatable {
  /// The bytes from a first position through a last one, or to the end if there isn't one.
  case from(Int64, through: Int64?)

  /// The last bytes.
  case suffix(Int64)

  /// The largest number of ranges in one request.
  ///
  /// A request for more gets the whole representation.
  static let largestCount = 32

  /// Reads `Range`.
  ///
  /// Returns `nil` if the field must be ignored: its unit isn't `bytes`, its syntax is wrong, or it asks for too many
  /// ranges.
  static func ranges(in text: [UInt8]) -> [ByteRange]? {
    var scanner = FieldScanner(text)
    guard let unit = scanner.token(), unit.lowercasedText == "bytes", scanner.skip(UInt8(ascii: "=")) else {
      return nil
    }
    var ranges: [ByteRange] = []
    while true {
      scanner.skipToMember()
      guard scanner.current != nil else { return ranges.isEmpty ? nil : ranges }
      let first = scanner.number()
      guard scanner.skip(UInt8(ascii: "-")) else { return nil }
      let last = scanner.number()
      guard scanner.skipMember(), ranges.count < largestCount else { return nil }
      switch (first, last) {
      case (let first?, let last):
        if let last, last < first { return nil }
        ranges.append(.from(first, through: last))
      case (nil, let last?): ranges.append(.suffix(last))
      case (nil, nil): return nil
      }
    }
  }

  /// Returns the bytes of a representation of a length that the range covers, or `nil` if there isn't one.
  func bytes(of length: Int64) -> Range<Int64>? {
    switch self {
    case .from(let first, let last):
      guard first < length else { return nil }
      return first..<(min(last ?? length, length - 1) + 1)
    case .suffix(let count):
      guard count > 0, length > 0 else { return nil }
      return max(0, length - count)..<length
    }
  }
}

/// The value of `Content-Range` (RFC 9110, section 14.4).
struct ContentRange: Sendable, Equatable {
  /// The bytes, or `nil` for an unsatisfied range.
  var bytes: Range<Int64>?

  /// The length of the whole representation, or `nil` if it isn't known.
  var length: Int64?

  /// Reads a value.
  ///
  /// Returns `nil` if its unit isn't `bytes`, its syntax is wrong, or it contradicts itself.
  init?(_ text: [UInt8]) {
    var scanner = FieldScanner(Array(text.trimmed))
    guard let unit = scanner.token(), unit.lowercasedText == "bytes", scanner.skip(0x20) else { return nil }
    if scanner.skip(UInt8(ascii: "*")) {
      guard scanner.skip(UInt8(ascii: "/")), let length = scanner.number(), scanner.current == nil else { return nil }
      self.length = length
      return
    }
    guard let first = scanner.number(), scanner.skip(UInt8(ascii: "-")), let last = scanner.number(), first <= last,
      scanner.skip(UInt8(ascii: "/"))
    else { return nil }
    if !scanner.skip(UInt8(ascii: "*")) {
      guard let length = scanner.number(), last < length else { return nil }
      self.length = length
    }
    guard scanner.current == nil else { return nil }
    bytes = first..<(last + 1)
  }

  init(bytes: Range<Int64>?, length: Int64?) {
    self.bytes = bytes
    self.length = length
  }

  /// The value as it is written in a field.
  var text: String {
    let length = length.map { "\($0)" } ?? "*"
    return bytes.map { "bytes \($0.lowerBound)-\($0.upperBound - 1)/\(length)" } ?? "bytes */\(length)"
  }
}
#endif
