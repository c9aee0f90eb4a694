import Larder

/// The keys of an indexed store in its base.
///
/// The article "The format of indexes" describes them.
struct IndexLayout: Sendable {
  let valuePrefix: StoreKey
  let indexPrefix: StoreKey

  /// The key of the catalog of indexes.
  let catalogKey: StoreKey

  /// The key of the announced removals of ranges.
  let removalsKey: StoreKey

  /// The range of all values.
  let values: KeyRange

  /// The range of the entries of all indexes.
  ///
  /// They begin with a number as a key component, whose type code is between these bounds. The other records do not.
  let indexEntries: KeyRange

  init(valuePrefix: StoreKey, indexPrefix: StoreKey) {
    self.valuePrefix = valuePrefix
    self.indexPrefix = indexPrefix
    catalogKey = indexPrefix + "catalog"
    removalsKey = indexPrefix + "removals"
    // The key that equals the prefix is not a key of a value.
    values = KeyRange(from: valuePrefix + StoreKey(bytes: [0]), upTo: KeyRange.prefix(valuePrefix).upperBound)
    indexEntries = KeyRange(
      from: indexPrefix + StoreKey(bytes: [0x14]), upTo: indexPrefix + StoreKey(bytes: [0x1E]))
  }

  /// Returns the key of the progress of an index that is being rebuilt.
  func progressKey(_ id: Int) -> StoreKey { indexPrefix + "progress" + StoreKey(components: id) }

  // MARK: Values

  func valueKey(_ key: StoreKey) -> StoreKey { valuePrefix + key }

  /// Returns the key of an entry from the key of its value.
  func key(ofValue valueKey: StoreKey) -> StoreKey { StoreKey(bytes: valueKey.bytes.dropFirst(valuePrefix.count)) }

  /// Returns the range of the values of a range of keys.
  func valueRange(_ range: KeyRange) -> KeyRange {
    KeyRange(
      from: range.lowerBound.isEmpty ? values.lowerBound : valueKey(range.lowerBound),
      upTo: range.upperBound.map(valueKey) ?? values.upperBound)
  }

  // MARK: Indexes

  /// Returns the key of an index entry.
  ///
  /// - Parameters:
  ///   - id: The number of the index.
  ///   - components: The index key.
  ///   - key: The key of the indexed entry, or `nil` in a unique index, where the index entry contains it.
  func entryKey(_ id: Int, _ components: [any KeyComponentConvertible], _ key: StoreKey?) -> StoreKey {
    let all = [id.keyComponent] + components.map { $0.keyComponent } + (key.map { [.bytes($0.bytes)] } ?? [])
    return indexPrefix + StoreKey(components: all)
  }

  /// Returns the range of the entries of an index whose index keys are in a range.
  func entryRange(_ id: Int, _ range: KeyRange = .all) -> KeyRange {
    let region = KeyRange.prefix(components: id)
    let start = indexPrefix + region.lowerBound
    return KeyRange(
      from: start + range.lowerBound,
      upTo: range.upperBound.map { start + $0 } ?? region.upperBound.map { indexPrefix + $0 })
  }

  /// Returns the part of an index entry's key that ``entryRange(_:_:)`` compares with the bounds of a range.
  func indexKey(of entryKey: StoreKey, _ id: Int) -> StoreKey {
    StoreKey(bytes: entryKey.bytes.dropFirst(indexPrefix.count + StoreKey(components: id).count))
  }

  /// Returns the key of the entry that an index entry belongs to.
  ///
  /// - Parameters:
  ///   - entry: The index entry.
  ///   - isUnique: Whether the index is unique.
  /// - Throws: An error if the index entry is damaged.
  func key(of entry: StoreEntry<[UInt8]>, isUnique: Bool) throws -> StoreKey {
    guard !isUnique else { return try checked(entry.value) }
    let components = try StoreKey(bytes: entry.key.bytes.dropFirst(indexPrefix.count)).components()
    return try checked(components.last?.bytes ?? [])
  }

  private func checked(_ key: [UInt8]) throws -> StoreKey {
    guard !key.isEmpty, key.count + valuePrefix.count <= StoreKey.maximumLength else { throw DamagedIndexEntry() }
    return StoreKey(bytes: key)
  }
}

/// The error of an index entry that names no valid key.
struct DamagedIndexEntry: Error {}

extension StoreKey {
  static func + (left: StoreKey, right: StoreKey) -> StoreKey {
    StoreKey(bytes: left.bytes + right.bytes)
  }
}
