import Larder

/// The keys of a bounded store in its base.
///
/// The article "The format of bounded stores" describes them.
struct BoundedLayout: Sendable {
  /// The number of bytes of a place in the order of use.
  static let placeLength = 8

  let valuePrefix: StoreKey

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
    self.valuePrefix = valuePrefix
    totalsKey = recordPrefix + "totals"
    entryPrefix = recordPrefix + "e"
    orderPrefix = recordPrefix + "o"
    // The key that equals the prefix is not a key of a value.
    values = KeyRange(from: valuePrefix + StoreKey(bytes: [0]), upTo: KeyRange.prefix(valuePrefix).upperBound)
    entries = .prefix(entryPrefix)
    order = .prefix(orderPrefix)
    overhead = max(valuePrefix.count, orderPrefix.count + BoundedLayout.placeLength)
  }

  func valueKey(_ key: StoreKey) -> StoreKey { valuePrefix + key }

  func entryKey(_ key: StoreKey) -> StoreKey { entryPrefix + key }

  func orderKey(_ key: StoreKey, at place: UInt64) -> StoreKey {
    StoreKey(bytes: orderPrefix.bytes + place.bigEndianBytes + key.bytes)
  }

  func key(ofValue valueKey: StoreKey) -> StoreKey { StoreKey(bytes: valueKey.bytes.dropFirst(valuePrefix.count)) }

  func key(ofEntry entryKey: StoreKey) -> StoreKey { StoreKey(bytes: entryKey.bytes.dropFirst(entryPrefix.count)) }

  /// Returns the key and the place of an entry in the order of use, or `nil` if the record is damaged.
  func use(of orderKey: StoreKey) -> (key: StoreKey, place: UInt64)? {
    let bytes = orderKey.bytes.dropFirst(orderPrefix.count)
    guard bytes.count > BoundedLayout.placeLength else { return nil }
    return (
      StoreKey(bytes: bytes.dropFirst(BoundedLayout.placeLength)),
      UInt64(bigEndianBytes: bytes.prefix(BoundedLayout.placeLength))
    )
  }

  /// Returns the range of the values of a range of keys.
  func valueRange(_ range: KeyRange) -> KeyRange {
    KeyRange(
      from: range.lowerBound.isEmpty ? values.lowerBound : valueKey(range.lowerBound),
      upTo: range.upperBound.map(valueKey) ?? values.upperBound)
  }
}

/// The record of an entry: its size, and when it was last used.
struct EntryRecord: Sendable, Equatable {
  /// The place in the order of use, in which a smaller one is evicted first.
  var place: UInt64

  /// The wall-clock time at which the place was recorded, in microseconds since 1970.
  var microseconds: Int64

  /// The number of bytes of the key and the value.
  var size: Int

  static let length = 24

  /// A size that no entry has, so that sums cannot overflow if a record is damaged.
  private static let maximumSize: UInt64 = 1 << 44

  init(place: UInt64, microseconds: Int64, size: Int) {
    self.place = place
    self.microseconds = microseconds
    self.size = size
  }

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
    place.bigEndianBytes + UInt64(bitPattern: microseconds).bigEndianBytes + UInt64(size).bigEndianBytes
  }
}

/// The record of the totals of a bounded store.
struct Totals: Sendable, Equatable {
  static let formatVersion: UInt8 = 1
  static let length = 34

  /// The greatest valid sum and place in a record, so that no sum overflows.
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

  /// A number that changes whenever an entry is inserted, so that the removal of a range notices it.
  var insertions: UInt64 = 0

  /// Whether a repair has begun and not ended, so that the sums may be wrong.
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

extension UInt64 {
  fileprivate var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }

  fileprivate init(bigEndianBytes bytes: some Sequence<UInt8>) {
    self = bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension StoreKey {
  fileprivate static func + (left: StoreKey, right: StoreKey) -> StoreKey {
    StoreKey(bytes: left.bytes + right.bytes)
  }
}
