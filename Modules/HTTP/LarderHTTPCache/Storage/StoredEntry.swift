#if HTTPCache
import Foundation
import HTTPCachingRules
import HTTPTypes
import Larder

/// A stored response: an entry of the store whose value is a record of the response and its bodies.
///
/// Another program may have written the record, so reading checks every number and every byte that could do harm.
struct StoredEntry: Sendable, Equatable {
  static let formatVersion: UInt8 = 1

  /// The greatest number of bytes of a record.
  static let maximumLength = 1 << 20

  /// The greatest numbers of parts and of fields.
  static let maximumPartCount = 64
  static let maximumFieldCount = 4_096

  let key: StoreKey

  /// The bytes of the record, to which a commit compares those that are stored.
  let bytes: [UInt8]

  /// The response's place in the order of use, in which a smaller one is evicted first.
  let place: UInt64

  /// The time when the place was recorded, in microseconds since 1970.
  let used: Int64

  /// The response, whose ranges are those of ``parts``.
  let response: StoredResponse

  /// The bytes of the representation that are stored, in ascending order without overlaps.
  let parts: [StoredPart]

  /// The bodies that the parts of the response are in.
  let bodies: [StoredBody]

  private init(
    _ key: StoreKey, _ bytes: [UInt8], place: UInt64, used: Int64, _ response: StoredResponse, _ parts: [StoredPart],
    _ bodies: [StoredBody]
  ) {
    var response = response
    response.ranges = parts.map(\.range)
    (self.key, self.bytes, self.place, self.used) = (key, bytes, place, used)
    (self.response, self.parts, self.bodies) = (response, parts, bodies)
  }

  // MARK: Writing

  /// Creates an entry that is to be stored.
  ///
  /// - Throws: ``StorageRefusal/tooLarge`` if the record would exceed its limits.
  init(
    key: StoreKey, place: UInt64, used: Int64, response: StoredResponse, parts: [StoredPart] = [],
    bodies: [StoredBody]
  ) throws {
    let bytes = try Self.bytes(place: place, used: used, response, parts, bodies)
    self.init(key, bytes, place: place, used: used, response, parts, bodies)
  }

  /// Returns the entry with another head.
  ///
  /// - Throws: ``StorageRefusal/tooLarge``.
  func freshened(by response: StoredResponse) throws -> StoredEntry {
    try StoredEntry(key: key, place: place, used: used, response: response, parts: parts, bodies: bodies)
  }

  /// Returns the entry with another place in the order of use.
  ///
  /// - Throws: ``StorageRefusal/tooLarge``.
  func moved(to place: UInt64, at now: Int64) throws -> StoredEntry {
    try StoredEntry(key: key, place: place, used: now, response: response, parts: parts, bodies: bodies)
  }

  /// Returns the entry of the order of use that belongs to the response.
  var use: UseRecord { UseRecord(responseKey: key, recordLength: bytes.count, bodies: bodies) }

  private static func bytes(
    place: UInt64, used: Int64, _ response: StoredResponse, _ parts: [StoredPart], _ bodies: [StoredBody]
  ) throws -> [UInt8] {
    let (fields, selecting) = (response.fields, response.selecting.sets)
    guard parts.count <= maximumPartCount, bodies.count <= maximumPartCount,
      fields.count <= maximumFieldCount, selecting.count <= SelectingFields.largestSetCount,
      selecting.allSatisfy({ $0.count <= SelectingFields.largestFieldCount })
    else { throw StorageRefusal.tooLarge }
    var bytes = [formatVersion]
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
    bytes.append(uint16: parts.count)
    for part in parts {
      bytes.append(contentsOf: part.body.bytes)
      bytes.append(int64: part.bodyStart)
      bytes.append(int64: part.range.lowerBound)
      bytes.append(int64: part.range.upperBound)
    }
    bytes.append(block: response.userData)
    guard bytes.count <= maximumLength else { throw StorageRefusal.tooLarge }
    return bytes
  }

  // MARK: Reading

  /// Reads an entry, or returns `nil` if there isn't one or its record is damaged.
  ///
  /// A record of a newer version counts as damaged, because a cache can do without it.
  init?(_ key: StoreKey, _ bytes: [UInt8]?) {
    guard let bytes, bytes.count <= Self.maximumLength else { return nil }
    var reader = ByteReader(bytes)
    guard reader.uint8() == Self.formatVersion, let place = reader.uint64(), let used = reader.int64(),
      var response = reader.head(), let bodies = reader.bodies()
    else { return nil }
    guard let parts = reader.parts(in: bodies, length: response.length), let userData = reader.block(),
      reader.remaining.isEmpty
    else { return nil }
    response.userData = Array(userData)
    self.init(key, bytes, place: place, used: used, response, parts, bodies)
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
    return Date(microsecondsSince1970: microseconds)
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
    guard let count = uint16(), count <= StoredEntry.maximumFieldCount else { return nil }
    var fields = HTTPFields()
    for _ in 0..<count {
      guard let name = text().flatMap({ HTTPField.Name($0) }), let value = line() else { return nil }
      fields.append(HTTPField(name: name, lenientValue: value))
    }
    return fields
  }

  /// Reads parts that are in ascending order, don't overlap, and are inside of the representation and the bodies.
  fileprivate mutating func parts(in bodies: [StoredBody], length: Int64?) -> [StoredPart]? {
    guard let count = uint16(), count <= StoredEntry.maximumPartCount else { return nil }
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
    min(max(microsecondsSince1970, Date.microsecondsInRecords.lowerBound), Date.microsecondsInRecords.upperBound)
  }
}
#endif
