import Larder

/// The keys of a bounded store in its base.
///
/// The article "The format of bounded stores" describes them.
struct BoundedLayout: Sendable {
  /// The number of places that share a record of the order of use.
  static let placesPerRecord: UInt64 = 16

  /// The keys of the values.
  let valueKeys: KeyPrefix

  /// The key of the record of totals.
  let totalsKey: StoreKey

  /// The prefixes of the records of entries and of the order of use.
  let entryPrefix: StoreKey
  let orderPrefix: StoreKey

  /// The ranges of all values, of all records of entries, and of the order of use.
  let values: KeyRange
  let entries: KeyRange
  let order: KeyRange

  /// The number of bytes by which a key of the base may be longer than the key of the entry.
  let overhead: Int

  init(valuePrefix: StoreKey, recordPrefix: StoreKey) {
    valueKeys = KeyPrefix(valuePrefix)
    totalsKey = recordPrefix.appending("totals")
    entryPrefix = recordPrefix.appending("e")
    orderPrefix = recordPrefix.appending("o")
    values = valueKeys.storedRange(.all)
    entries = .prefix(entryPrefix)
    order = .prefix(orderPrefix)
    overhead = max(valuePrefix.count, entryPrefix.count)
  }

  func valueKey(_ key: StoreKey) -> StoreKey { valueKeys.storedKey(key) }

  func entryKey(_ key: StoreKey) -> StoreKey { entryPrefix.appending(key) }

  /// Returns the number of the record of the order of use that has a place.
  func orderNumber(of place: UInt64) -> UInt64 { place / Self.placesPerRecord }

  func orderKey(_ number: UInt64) -> StoreKey { orderPrefix.appending(StoreKey(bytes: number.bigEndianBytes)) }

  /// Returns the number of a record of the order of use, or `nil` if its key is damaged.
  func orderNumber(ofKey orderKey: StoreKey) -> UInt64? {
    let bytes = orderKey.bytes.dropFirst(orderPrefix.count)
    return bytes.count == 8 ? UInt64(bigEndianBytes: bytes) : nil
  }

  func key(ofValue valueKey: StoreKey) -> StoreKey { StoreKey(bytes: valueKey.bytes.dropFirst(valueKeys.prefix.count)) }

  func key(ofEntry entryKey: StoreKey) -> StoreKey { StoreKey(bytes: entryKey.bytes.dropFirst(entryPrefix.count)) }
}

/// The record of an entry: its size, and when it was last used.
struct EntryRecord: Sendable, Equatable {
  /// The place in the order of use, in which a smaller one is evicted first.
  var place: UInt64

  /// The wall-clock time when the place was recorded, in microseconds since 1970.
  var microseconds: Int64

  /// The number of bytes of the key and the value.
  var size: Int

  static let length = 24

  /// A size that no entry has, so sums cannot overflow if a record is damaged.
  private static let maximumSize: UInt64 = 1 << 44
}

extension EntryRecord {
  /// Reads a record, or returns `nil` if it is damaged.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == EntryRecord.length else { return nil }
    let size = UInt64(bigEndianBytes: bytes[16..<24])
    place = UInt64(bigEndianBytes: bytes[0..<8])
    guard size <= EntryRecord.maximumSize, place <= Totals.maximumPlace else { return nil }
    microseconds = Int64(bitPattern: UInt64(bigEndianBytes: bytes[8..<16]))
    self.size = Int(size)
  }

  var bytes: [UInt8] {
    withUnsafeBytes(of: (place.bigEndian, microseconds.bigEndian, UInt64(size).bigEndian)) { Array($0) }
  }
}

/// A record of the order of use: the keys of the entries with some places, the first one to evict first.
struct OrderRecord: Sendable, Equatable {
  var keys: [StoreKey]

  init(_ keys: [StoreKey] = []) {
    self.keys = keys
  }

  /// Reads a record, or returns `nil` if it is damaged.
  init?(_ bytes: [UInt8]) {
    var keys: [StoreKey] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      guard rest.count > 2 else { return nil }
      let length = Int(UInt16(bigEndianBytes: rest.prefix(2)))
      rest = rest.dropFirst(2)
      guard length > 0, length <= rest.count else { return nil }
      keys.append(StoreKey(bytes: rest.prefix(length)))
      rest = rest.dropFirst(length)
    }
    guard !keys.isEmpty else { return nil }
    self.keys = keys
  }

  /// The bytes of the record, or `nil` if there is no key, so there is no record.
  var bytes: [UInt8]? {
    guard !keys.isEmpty else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(keys.reduce(0) { $0 + 2 + $1.count })
    for key in keys {
      bytes.append(UInt8(key.count >> 8))
      bytes.append(UInt8(key.count & 0xFF))
      key.withUnsafeBytes { bytes.append(contentsOf: $0) }
    }
    return bytes
  }
}

/// The record of the totals of a bounded store.
struct Totals: Sendable, Equatable {
  static let formatVersion: UInt8 = 1
  static let length = 34

  /// The greatest valid sum and place in a record, so no sum overflows.
  static let maximumSum = 1 << 60
  static let maximumPlace: UInt64 = 1 << 62

  /// The number of bytes of all keys and values.
  var bytes = 0

  /// The number of entries.
  var count = 0

  /// The greatest place in the order of use, or a greater one.
  ///
  /// It changes whenever an entry gets a place.
  var place: UInt64 = 0

  /// A number that changes whenever an entry is inserted, so the removal of a range notices it.
  var insertions: UInt64 = 0

  /// A Boolean value that indicates whether a repair has begun and not ended, so the sums may be wrong.
  var isInRepair = false

  /// Creates the totals of an empty store.
  init() {}

  /// Reads the record.
  ///
  /// - Throws: `StoreError` with `versionMismatch` or `corrupted`.
  init(_ record: [UInt8]?, store: String, for operation: StoreOperation) throws {
    guard let record else { return }
    if let version = record.first, version > Totals.formatVersion {
      throw StoreError(
        .versionMismatch, during: operation, store: store,
        message: "the accounting has format version \(version); this version of Larder reads version "
          + "\(Totals.formatVersion), so use a newer one")
    }
    func damage() -> StoreError {
      BoundedLayout.damage("the record of totals is damaged", store: store, for: operation)
    }
    guard record.count == Totals.length, record[0] == Totals.formatVersion, record[1] <= 1 else { throw damage() }
    let (bytes, count) = (UInt64(bigEndianBytes: record[2..<10]), UInt64(bigEndianBytes: record[10..<18]))
    place = UInt64(bigEndianBytes: record[18..<26])
    guard max(bytes, count) <= UInt64(Totals.maximumSum), place <= Totals.maximumPlace else { throw damage() }
    isInRepair = record[1] == 1
    self.bytes = Int(bytes)
    self.count = Int(count)
    insertions = UInt64(bigEndianBytes: record[26..<34])
  }

  /// The bytes of the record.
  var record: [UInt8] {
    [Totals.formatVersion, isInRepair ? 1 : 0] + UInt64(bytes).bigEndianBytes + UInt64(count).bigEndianBytes
      + place.bigEndianBytes + insertions.bigEndianBytes
  }
}

extension BoundedLayout {
  /// The error of records that do not belong together.
  static func damage(
    _ message: String, key: StoreKey? = nil, store: String, for operation: StoreOperation
  ) -> StoreError {
    StoreError(
      .corrupted, during: operation, store: store, key: key,
      message: "\(message); call repairAccounting() to count again")
  }
}
