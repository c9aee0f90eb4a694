#if HTTPCache
internal import Foundation
internal import HTTPCachingRules
internal import HTTPTypes
internal import Larder

/// The record of a stored response.
///
/// Another program may have written it, so reading checks every number and every byte that could do harm.
struct ResponseRecord: Sendable, Equatable {
  static let formatVersion: UInt8 = 1

  /// The greatest number of bytes of a record.
  static let maximumLength = 1 << 20

  /// The greatest numbers of parts and of fields.
  static let maximumPartCount = 64
  static let maximumFieldCount = 4_096

  /// The response's place in the order of use, in which a smaller one is evicted first.
  var place: UInt64

  /// The time at which the place was recorded, in microseconds since 1970.
  var used: Int64

  var response: StoredResponse

  /// The bodies that the parts of the response are in.
  var bodies: [StoredBody]

  init(place: UInt64, used: Int64, response: StoredResponse, bodies: [StoredBody]) {
    self.place = place
    self.used = used
    self.response = response
    self.bodies = bodies
  }

  // MARK: Writing

  /// The bytes of the record.
  ///
  /// - Throws: ``StorageRefusal/tooLarge`` if the record would exceed its limits.
  func encoded() throws -> [UInt8] {
    let (fields, selecting) = (response.fields, response.selecting.sets)
    guard response.parts.count <= Self.maximumPartCount, bodies.count <= Self.maximumPartCount,
      fields.count <= Self.maximumFieldCount, selecting.count <= SelectingFields.largestSetCount,
      selecting.allSatisfy({ $0.count <= SelectingFields.largestFieldCount })
    else { throw StorageRefusal.tooLarge }
    var bytes = [Self.formatVersion]
    bytes.append(contentsOf: place.bigEndianBytes)
    bytes.append(int64: used)
    bytes.append(uint16: response.status)
    bytes.append(int64: response.requestTime.microsecondsInRecord)
    bytes.append(int64: response.responseTime.microsecondsInRecord)
    bytes.append(int64: response.length ?? -1)
    bytes.append(block: Array(response.url.utf8))
    bytes.append(block: response.partition)
    bytes.append(uint16: selecting.count)
    for set in selecting {
      bytes.append(uint16: set.count)
      for field in set {
        bytes.append(block: Array(field.name.utf8))
        bytes.append(field.value == nil ? 0 : 1)
        if let value = field.value { bytes.append(block: value) }
      }
    }
    bytes.append(uint16: fields.count)
    for field in fields {
      bytes.append(block: Array(field.name.rawName.utf8))
      field.withUnsafeBytesOfValue { bytes.append(block: $0) }
    }
    bytes.append(bodies)
    bytes.append(uint16: response.parts.count)
    for part in response.parts {
      bytes.append(contentsOf: part.body.bytes)
      bytes.append(int64: part.bodyStart)
      bytes.append(int64: part.range.lowerBound)
      bytes.append(int64: part.range.upperBound)
    }
    bytes.append(block: response.userData)
    guard bytes.count <= Self.maximumLength else { throw StorageRefusal.tooLarge }
    return bytes
  }

  // MARK: Reading

  /// Reads a record, or returns `nil` if it is damaged.
  ///
  /// A record of a newer version counts as damaged, because a cache can do without it.
  init?(_ bytes: [UInt8]) {
    guard bytes.count <= Self.maximumLength else { return nil }
    var reader = ByteReader(bytes)
    guard reader.uint8() == Self.formatVersion, let place = reader.uint64(), let used = reader.int64(),
      let response = reader.head(), let bodies = reader.bodies()
    else { return nil }
    (self.place, self.used, self.response, self.bodies) = (place, used, response, bodies)
    guard let parts = reader.parts(in: bodies, length: response.length), let userData = reader.block(),
      reader.remaining.isEmpty
    else { return nil }
    self.response.parts = parts
    self.response.userData = Array(userData)
  }
}

extension ByteReader {
  /// Reads a response up to its fields.
  fileprivate mutating func head() -> StoredResponse? {
    guard let status = uint16(), (200...999).contains(status), let requestTime = date(), let responseTime = date(),
      let length = int64(), (-1...StorageLayout.maximumBodyLength).contains(length), let url = text(),
      let partition = block(), let selecting = selecting(), let fields = fields()
    else { return nil }
    return StoredResponse(
      url: url, partition: Array(partition), status: Int(status), fields: fields, selecting: selecting,
      requestTime: requestTime, responseTime: responseTime, length: length == -1 ? nil : length)
  }

  private mutating func date() -> Date? {
    guard let microseconds = int64(), Date.microsecondsInRecords.contains(microseconds) else { return nil }
    return Date(microseconds: microseconds)
  }

  /// Reads bytes without CR, LF and NUL, which end a field or a line of HTTP.
  private mutating func line() -> ArraySlice<UInt8>? {
    guard let bytes = block(), !bytes.contains(where: { $0 == 0 || $0 == 10 || $0 == 13 }) else { return nil }
    return bytes
  }

  private mutating func text() -> String? {
    guard let line = line() else { return nil }
    let text = String(decoding: line, as: UTF8.self)
    // Bytes that are no text were replaced. This takes less time than `String(validating:as:)`.
    return text.utf8.elementsEqual(line) ? text : nil
  }

  private mutating func selecting() -> SelectingFields? {
    guard let count = uint16(), count <= SelectingFields.largestSetCount else { return nil }
    var sets: [[SelectingFields.Field]] = []
    for _ in 0..<count {
      guard let set = selectingSet() else { return nil }
      sets.append(set)
    }
    return SelectingFields(sets: sets)
  }

  private mutating func selectingSet() -> [SelectingFields.Field]? {
    guard let count = uint16(), count <= SelectingFields.largestFieldCount else { return nil }
    var set: [SelectingFields.Field] = []
    for _ in 0..<count {
      guard let name = text(), let hasValue = uint8(), hasValue <= 1 else { return nil }
      var value: [UInt8]?
      if hasValue == 1 {
        guard let bytes = block() else { return nil }
        value = Array(bytes)
      }
      set.append(SelectingFields.Field(name: name, value: value))
    }
    return set
  }

  private mutating func fields() -> HTTPFields? {
    guard let count = uint16(), count <= ResponseRecord.maximumFieldCount else { return nil }
    var fields = HTTPFields()
    for _ in 0..<count {
      guard let name = text().flatMap({ HTTPField.Name($0) }), let value = line() else { return nil }
      fields.append(HTTPField(name: name, lenientValue: value))
    }
    return fields
  }

  /// Reads parts, which are in ascending order, don't overlap, and are inside of the representation and the bodies.
  fileprivate mutating func parts(in bodies: [StoredBody], length: Int64?) -> [StoredPart]? {
    guard let count = uint16(), count <= ResponseRecord.maximumPartCount else { return nil }
    var parts: [StoredPart] = []
    var end: Int64 = 0
    for _ in 0..<count {
      guard let body = bytes(BodyIdentifier.length).flatMap({ BodyIdentifier($0) }), let start = int64(),
        let lower = int64(), let upper = int64(), start >= 0, start <= lower, end <= lower, lower <= upper,
        upper <= length ?? StorageLayout.maximumBodyLength,
        let stored = bodies.first(where: { $0.identifier == body }), upper - start <= stored.length
      else { return nil }
      parts.append(StoredPart(range: lower..<upper, body: body, bodyStart: start))
      end = upper
    }
    return parts
  }
}

extension Date {
  /// The times that a record can have: some 2,000 years before and after 1970.
  fileprivate static let microsecondsInRecords = -(Int64(1) << 56)...(Int64(1) << 56)

  /// The time in microseconds since 1970, at most what a record can have.
  fileprivate var microsecondsInRecord: Int64 {
    min(max(microseconds, Date.microsecondsInRecords.lowerBound), Date.microsecondsInRecords.upperBound)
  }
}
#endif
