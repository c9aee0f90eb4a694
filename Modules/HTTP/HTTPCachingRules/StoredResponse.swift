#if HTTPCache
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A stored response: the head, where its body is, and everything that decides on its reuse.
///
/// A response that has a body of its own is complete if its parts cover the whole representation. A response without
/// parts is complete as well: its body is empty, or still being received.
public struct StoredResponse: Sendable, Equatable {
  /// The whole URL that was forwarded, as ``RequestURL`` writes it.
  public var url: String

  /// The partition of the cache that the response belongs to; empty if the cache has none.
  public var partition: [UInt8]

  /// The final status code.
  ///
  /// A stored part of a representation has 200.
  public var status: Int

  /// The fields of the head that may be stored, in the order in which they came.
  public var fields: HTTPFields {
    didSet { facts = ResponseFacts(fields, received: responseTime.timeIntervalSince1970) }
  }

  /// The values that the request had in the fields that `Vary` names.
  public var selecting: SelectingFields

  /// The time when the request was forwarded.
  ///
  /// A record keeps microseconds.
  public var requestTime: Date

  /// The time when the response was received, or the last response that freshened it.
  public var responseTime: Date

  /// The length in bytes of the whole representation, if it is known.
  public var length: Int64?

  /// The bytes of the representation that are stored, in ascending order without overlaps.
  public var parts: [StoredPart]

  /// The data that the hook added.
  public var userData: [UInt8]

  /// The values of ``fields`` that the rules need, parsed once.
  private(set) var facts: ResponseFacts

  /// Creates a stored response.
  public init(
    url: String, partition: [UInt8] = [], status: Int, fields: HTTPFields, selecting: SelectingFields,
    requestTime: Date, responseTime: Date, length: Int64?, parts: [StoredPart] = [], userData: [UInt8] = []
  ) {
    self.url = url
    self.partition = partition
    self.status = status
    self.fields = fields
    self.selecting = selecting
    self.requestTime = requestTime
    self.responseTime = responseTime
    self.length = length
    self.parts = parts
    self.userData = userData
    facts = ResponseFacts(fields, received: responseTime.timeIntervalSince1970)
  }

  /// Returns whether two responses have the same bytes everywhere.
  ///
  /// The order of fields counts.
  public static func == (left: StoredResponse, right: StoredResponse) -> Bool {
    left.url == right.url && left.partition == right.partition && left.status == right.status
      && left.fields.hasSameBytes(as: right.fields) && left.selecting == right.selecting
      && left.requestTime == right.requestTime && left.responseTime == right.responseTime
      && left.length == right.length && left.parts == right.parts && left.userData == right.userData
  }

  /// Whether every byte of the representation is stored, or still being received.
  public var isComplete: Bool {
    guard !parts.isEmpty else { return true }
    guard let length else { return false }
    return missing(in: 0..<length).isEmpty
  }

  /// Returns the gaps of a range of the representation, in ascending order: the bytes that no part has.
  public func missing(in range: Range<Int64>) -> [Range<Int64>] {
    var gaps: [Range<Int64>] = []
    var next = range.lowerBound
    for part in parts where part.range.upperBound > next && part.range.lowerBound < range.upperBound {
      if part.range.lowerBound > next { gaps.append(next..<part.range.lowerBound) }
      next = part.range.upperBound
    }
    if next < range.upperBound { gaps.append(next..<range.upperBound) }
    return gaps
  }

  /// Returns the pieces of the bodies that make up a range of the representation, in order.
  ///
  /// - Returns: The pieces, each with its place in the representation, or `nil` if a byte is missing.
  public func pieces(of range: Range<Int64>) -> [StoredPart]? {
    guard missing(in: range).isEmpty else { return nil }
    return parts.compactMap { part in
      let piece = part.range.clamped(to: range)
      return piece.isEmpty ? nil : StoredPart(range: piece, body: part.body, bodyStart: part.bodyStart)
    }
  }
}

/// A part of a representation that is stored in one body.
public struct StoredPart: Sendable, Equatable {
  /// The bytes of the representation.
  public var range: Range<Int64>

  /// The body that has them.
  public var body: BodyIdentifier

  /// The place in the representation of the first byte of the body.
  public var bodyStart: Int64

  /// Creates a part.
  ///
  /// - Parameters:
  ///   - range: The bytes of the representation.
  ///   - body: The body that has them.
  ///   - bodyStart: The place in the representation of the first byte of the body.
  public init(range: Range<Int64>, body: BodyIdentifier, bodyStart: Int64) {
    self.range = range
    self.body = body
    self.bodyStart = bodyStart
  }

  /// The place of the part's bytes in the body.
  public var rangeInBody: Range<Int64> {
    (range.lowerBound - bodyStart)..<(range.upperBound - bodyStart)
  }
}

/// The random identifier of a stored body: 16 bytes.
public struct BodyIdentifier: Sendable, Hashable {
  /// The first eight bytes, as a number in big-endian order.
  public var high: UInt64

  /// The last eight bytes, as a number in big-endian order.
  public var low: UInt64

  /// Creates an identifier.
  ///
  /// - Parameters:
  ///   - high: The first eight bytes, as a number in big-endian order.
  ///   - low: The last eight bytes, as a number in big-endian order.
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
}

extension HTTPFields {
  /// Returns whether both have the same fields in the same order, byte by byte.
  ///
  /// The operator of `HTTPFields` compares values as text, so that two spellings of one letter are equal.
  func hasSameBytes(as other: HTTPFields) -> Bool {
    count == other.count
      && zip(self, other).allSatisfy { one, other in
        one.name.rawName == other.name.rawName && one.hasSameValue(as: other)
      }
  }
}

extension HTTPField {
  /// Returns whether both fields have the same bytes as their values.
  func hasSameValue(as other: HTTPField) -> Bool {
    withUnsafeBytesOfValue { bytes in other.withUnsafeBytesOfValue { bytes.elementsEqual($0) } }
  }
}
#endif
