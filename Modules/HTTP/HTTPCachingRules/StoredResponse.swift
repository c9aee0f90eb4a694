#if HTTPCache
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A stored response: the head, the bytes of the body that are stored, and everything that decides on its reuse.
///
/// The body is the business of the cache that stores it. A response is complete if its ranges cover the whole
/// representation. A response without ranges is complete as well: its body is empty, or still being received.
public struct StoredResponse: Sendable, Equatable {
  /// The whole URL that was forwarded, as ``RequestURL`` writes it.
  public var url: String

  /// The partition of the cache that the response belongs to; empty if the cache has no partitions.
  public var partition: [UInt8]

  /// The final status code.
  ///
  /// A stored part of a representation has 200.
  public var status: Int

  /// The fields of the head that may be stored, in the order they came.
  public var fields: HTTPFields {
    didSet { facts = ResponseFacts(fields, received: responseTime.timeIntervalSince1970) }
  }

  /// The values that the request had in the fields that `Vary` names.
  public var selecting: SelectingFields

  /// The time when the request was forwarded.
  public var requestTime: Date

  /// The time when the response was received, or the last response that freshened it.
  public var responseTime: Date

  /// The length in bytes of the whole representation, if it is known.
  public var length: Int64?

  /// The bytes of the representation that are stored, in ascending order without overlaps.
  ///
  /// The parts that were received one after another are separate ranges, also if they touch.
  public var ranges: [Range<Int64>]

  /// The data that a cache keeps with the response, which the rules don't read.
  public var userData: [UInt8]

  /// The values of ``fields`` that the rules need, parsed once.
  private(set) var facts: ResponseFacts

  /// Creates a stored response, as a store has kept it.
  ///
  /// - Parameters:
  ///   - url: The whole URL that was forwarded.
  ///   - partition: The partition. Defaults to an empty one.
  ///   - status: The final status code.
  ///   - fields: The fields of the head.
  ///   - selecting: The values of the fields that `Vary` names.
  ///   - requestTime: The time when the request was forwarded.
  ///   - responseTime: The time when the response was received.
  ///   - length: The length in bytes of the whole representation, or `nil` if it isn't known.
  ///   - ranges: The bytes that are stored, in ascending order without overlaps. Defaults to an empty list, for a response that
  ///     is complete.
  ///   - userData: The data of the cache's own. Defaults to no bytes.
  public init(
    url: String, partition: [UInt8] = [], status: Int, fields: HTTPFields, selecting: SelectingFields,
    requestTime: Date, responseTime: Date, length: Int64?, ranges: [Range<Int64>] = [], userData: [UInt8] = []
  ) {
    self.url = url
    self.partition = partition
    self.status = status
    self.fields = fields
    self.selecting = selecting
    self.requestTime = requestTime
    self.responseTime = responseTime
    self.length = length
    self.ranges = ranges
    self.userData = userData
    facts = ResponseFacts(fields, received: responseTime.timeIntervalSince1970)
  }

  /// Returns whether two responses have the same bytes everywhere.
  ///
  /// The order of fields counts, and values are compared byte by byte.
  public static func == (left: StoredResponse, right: StoredResponse) -> Bool {
    left.url == right.url && left.partition == right.partition && left.status == right.status
      && left.fields.hasSameBytes(as: right.fields) && left.selecting == right.selecting
      && left.requestTime == right.requestTime && left.responseTime == right.responseTime
      && left.length == right.length && left.ranges == right.ranges && left.userData == right.userData
  }

  /// A Boolean value that indicates whether every byte of the representation is stored, or still being received.
  public var isComplete: Bool {
    guard !ranges.isEmpty else { return true }
    guard let length else { return false }
    return missing(in: 0..<length).isEmpty
  }

  /// Returns the gaps of a range of the representation, in ascending order: the bytes that aren't stored.
  ///
  /// ```swift
  /// for gap in response.missing(in: 0..<1_000_000) { try await fetch(gap) }
  /// ```
  ///
  /// - Parameter range: The range.
  /// - Returns: The gaps. There are no gaps if the range is empty.
  public func missing(in range: Range<Int64>) -> [Range<Int64>] {
    var gaps: [Range<Int64>] = []
    var next = range.lowerBound
    for stored in ranges where stored.upperBound > next && stored.lowerBound < range.upperBound {
      if stored.lowerBound > next { gaps.append(next..<stored.lowerBound) }
      next = stored.upperBound
    }
    if next < range.upperBound { gaps.append(next..<range.upperBound) }
    return gaps
  }
}

extension HTTPFields {
  /// Returns whether both have the same fields in the same order, byte by byte.
  ///
  /// The operator of `HTTPFields` compares values as text, so two spellings of one letter are equal.
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
