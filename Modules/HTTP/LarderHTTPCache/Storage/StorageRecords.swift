#if HTTPCache
import HTTPCachingRules
import Larder

/// The record of a cache's totals.
struct StorageTotals: Sendable, Equatable {
  static let formatVersion: UInt8 = 3
  static let length = 49

  /// The greatest valid sum, place and number in a record, so nothing overflows.
  private static let maximum: UInt64 = 1 << 62

  /// The number of bytes of the keys and values of all other entries of the cache.
  var bytes = 0

  /// The number of responses.
  var responses = 0

  /// The greatest place in the order of use, or a greater one.
  var place: UInt64 = 0

  /// The number of invalidations so far.
  var invalidations: UInt64 = 0

  /// The number of bytes that the bodies which are being stored have reserved; see ``BodyMark/reserved``.
  var unfinished = 0

  /// The number of bytes of the keys and values of the marks, the retired bodies, and the chunks that belong to them.
  var transient = 0

  /// The number of bytes of all other entries: the responses and the log of invalidations.
  var lasting: Int { bytes - transient }

  /// Creates the totals of an empty cache.
  init() {}

  /// Reads the record, or returns the totals of an empty cache if there isn't one.
  ///
  /// - Throws: `StoreError` with `versionMismatch` or `corrupted`.
  init(_ record: [UInt8]?, store: String, for operation: StoreOperation) throws {
    guard let record else { return }
    if let version = record.first, version >= 1, version != Self.formatVersion {
      let advice =
        version > Self.formatVersion
        ? "use a newer one" : "remove all entries with the cache's prefix from the store, or choose another prefix"
      throw StoreError(
        .versionMismatch, during: operation, store: store,
        message: "the HTTP cache has format version \(version); this version of Larder reads version "
          + "\(Self.formatVersion), so \(advice)")
    }
    func number(_ offset: Int) -> UInt64 { UInt64(bigEndianBytes: record[offset..<(offset + 8)]) }
    guard record.count == Self.length, record[0] == Self.formatVersion,
      stride(from: 1, to: Self.length, by: 8).allSatisfy({ number($0) <= Self.maximum })
    else {
      throw StoreError(
        .corrupted, during: operation, store: store,
        message: "the totals of the HTTP cache are damaged; remove all entries with the cache's prefix from the store")
    }
    (bytes, responses) = (Int(number(1)), Int(number(9)))
    (place, invalidations, unfinished, transient) = (number(17), number(25), Int(number(33)), Int(number(41)))
  }

  /// The bytes of the record.
  var record: [UInt8] {
    [Self.formatVersion] + UInt64(bytes).bigEndianBytes + UInt64(responses).bigEndianBytes + place.bigEndianBytes
      + invalidations.bigEndianBytes + UInt64(unfinished).bigEndianBytes + UInt64(transient).bigEndianBytes
  }
}

/// The mark of a body that is being stored.
struct BodyMark: Sendable, Equatable {
  static let length = 32 + ProcessIdentity.length

  /// The random identifier of the storage that writes the body.
  var owner: UInt64

  /// The process that writes the body, or `nil` if it is unknown.
  var process: ProcessIdentity?

  /// The time of the last renewal, in microseconds since 1970.
  var renewed: Int64

  /// The number of bytes of the body that are stored.
  var count: Int64

  /// The number of bytes that the body reserves: those that were announced, or those that are stored if they are more.
  var reserved: Int64

  init(owner: UInt64, process: ProcessIdentity?, renewed: Int64, count: Int64, reserved: Int64) {
    (self.owner, self.process, self.renewed, self.count) = (owner, process, renewed, count)
    self.reserved = max(count, reserved)
  }

  /// Reads a mark, or returns `nil` if it is damaged.
  init?(_ bytes: [UInt8]) {
    var reader = ByteReader(bytes)
    guard bytes.count == Self.length, let owner = reader.uint64(),
      let place = reader.bytes(ProcessIdentity.placeLength), let number = reader.uint32(),
      let start = reader.uint64(), let renewed = reader.int64(), let count = reader.int64(),
      let reserved = reader.int64(), (0...StorageLayout.maximumBodyLength).contains(count),
      (count...StorageLayout.maximumBodyLength).contains(reserved)
    else { return nil }
    let process = number == 0 ? nil : ProcessIdentity(place: Array(place), number: number, start: start)
    self.init(owner: owner, process: process, renewed: renewed, count: count, reserved: reserved)
  }

  var bytes: [UInt8] {
    var bytes = owner.bigEndianBytes + ProcessIdentity.bytes(of: process)
    bytes.append(int64: renewed)
    bytes.append(int64: count)
    bytes.append(int64: reserved)
    return bytes
  }
}

/// A body of a response, with its length.
struct StoredBody: Sendable, Hashable {
  var identifier: BodyIdentifier

  /// The number of bytes, at most ``StorageLayout/maximumBodyLength``.
  var length: Int64
}

/// An entry of the order of use: everything that the eviction of a response needs, so a damaged response can be evicted
/// as well.
struct UseRecord: Sendable, Equatable {
  /// The key of the response.
  var responseKey: StoreKey

  /// The number of bytes of the response's record.
  var recordLength: Int

  /// The bodies of the response.
  var bodies: [StoredBody]
}

extension UseRecord {
  /// Reads an entry, or returns `nil` if it is damaged.
  init?(_ bytes: [UInt8], layout: StorageLayout) {
    var reader = ByteReader(bytes)
    guard let recordLength = reader.uint32(), let bodies = reader.bodies() else { return nil }
    let responseKey = StoreKey(bytes: layout.prefix.bytes + reader.remaining)
    guard recordLength <= StoredEntry.maximumLength, layout.responses.contains(responseKey) else { return nil }
    self.init(responseKey: responseKey, recordLength: Int(recordLength), bodies: bodies)
  }

  func bytes(layout: StorageLayout) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(uint32: recordLength)
    bytes.append(bodies)
    return bytes + responseKey.bytes.dropFirst(layout.prefix.count)
  }
}

// MARK: Bytes

/// A reader of bytes that may be damaged that never reads beyond their end.
struct ByteReader {
  private let all: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) {
    all = bytes
  }

  /// The bytes that were not read yet.
  var remaining: ArraySlice<UInt8> { all[position...] }

  /// Reads some bytes, or returns `nil` if there are not so many.
  mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
    guard count >= 0, count <= all.count - position else { return nil }
    defer { position += count }
    return all[position..<position + count]
  }

  /// Reads a number in big-endian order.
  private mutating func number<Number: FixedWidthInteger>() -> Number? {
    let length = Number.bitWidth / 8
    guard length <= all.count - position else { return nil }
    var number: Number = 0
    for byte in all[position..<position + length] { number = number << 8 | Number(truncatingIfNeeded: byte) }
    position += length
    return number
  }

  mutating func uint8() -> UInt8? { number() }

  mutating func uint16() -> UInt16? { number() }

  mutating func uint32() -> UInt32? { number() }

  mutating func uint64() -> UInt64? { number() }

  mutating func int64() -> Int64? { number() }

  /// Reads bytes after their number.
  mutating func block() -> ArraySlice<UInt8>? { uint32().flatMap { bytes(Int($0)) } }

  /// Reads the bodies of a response, which are distinct and not empty.
  mutating func bodies() -> [StoredBody]? {
    guard let count = uint16(), count <= StoredEntry.maximumPartCount else { return nil }
    var bodies: [StoredBody] = []
    for _ in 0..<count {
      guard let identifier = bytes(BodyIdentifier.length).flatMap({ BodyIdentifier($0) }), let length = int64(),
        (1...StorageLayout.maximumBodyLength).contains(length), !bodies.contains(where: { $0.identifier == identifier })
      else { return nil }
      bodies.append(StoredBody(identifier: identifier, length: length))
    }
    return bodies
  }
}

extension [UInt8] {
  mutating func append(uint16 value: Int) { append(contentsOf: UInt64(value).bigEndianBytes.suffix(2)) }

  mutating func append(uint32 value: Int) { append(contentsOf: UInt64(value).bigEndianBytes.suffix(4)) }

  mutating func append(int64 value: Int64) { append(contentsOf: UInt64(bitPattern: value).bigEndianBytes) }

  /// Appends bytes after their number.
  mutating func append(block bytes: some Collection<UInt8>) {
    append(uint32: bytes.count)
    append(contentsOf: bytes)
  }

  mutating func append(_ bodies: [StoredBody]) {
    append(uint16: bodies.count)
    for body in bodies {
      append(contentsOf: body.identifier.bytes)
      append(int64: body.length)
    }
  }
}
#endif
