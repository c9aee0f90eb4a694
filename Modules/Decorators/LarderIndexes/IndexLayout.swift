import Larder

/// The keys of an indexed store in its base.
///
/// The article "The format of indexes" describes them.
struct IndexLayout: Sendable {
  /// The keys of the values.
  let valueKeys: KeyPrefix

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

  /// The range of the lists of index entries.
  let entryLists: KeyRange

  /// The range of the keys that remember undecodable values.
  let undecodable: KeyRange

  init(valuePrefix: StoreKey, indexPrefix: StoreKey) {
    valueKeys = KeyPrefix(valuePrefix)
    self.indexPrefix = indexPrefix
    catalogKey = indexPrefix + "catalog"
    removalsKey = indexPrefix + "removals"
    values = valueKeys.storedRange(.all)
    indexEntries = KeyRange(
      from: indexPrefix + StoreKey(bytes: [0x14]), upTo: indexPrefix + StoreKey(bytes: [0x1E]))
    entryLists = .prefix(indexPrefix + "e")
    undecodable = .prefix(indexPrefix + "u")
  }

  /// Returns the key of the progress of an index that is being rebuilt.
  func progressKey(_ id: Int) -> StoreKey { indexPrefix + "progress" + StoreKey(components: id) }

  /// Returns the key of the list of the index entries of a key.
  func listKey(_ key: StoreKey) -> StoreKey { indexPrefix + "e" + key }

  /// Returns the key that remembers that a rebuild could not decode the value of a key.
  func undecodableKey(_ key: StoreKey) -> StoreKey { indexPrefix + "u" + key }

  /// Returns the key of an entry from the key that remembers that its value could not be decoded.
  func key(ofUndecodable key: StoreKey) -> StoreKey { StoreKey(bytes: key.bytes.dropFirst(indexPrefix.count + 1)) }

  // MARK: Values

  func valueKey(_ key: StoreKey) -> StoreKey { valueKeys.storedKey(key) }

  /// Returns the key of an entry from the key of its value.
  func key(ofValue valueKey: StoreKey) -> StoreKey { StoreKey(bytes: valueKey.bytes.dropFirst(valueKeys.prefix.count)) }

  // MARK: Indexes

  /// Returns the key of an index entry.
  ///
  /// - Parameters:
  ///   - id: The number of the index.
  ///   - components: The index key.
  ///   - key: The key of the indexed entry.
  ///   - isUnique: A Boolean value that indicates whether the index is unique, so the index entry contains the key of
  ///     the entry as its value.
  func entryKey(
    _ id: Int, _ components: [any KeyComponentConvertible], _ key: StoreKey, isUnique: Bool
  ) -> StoreKey {
    entryKey(
      of: StoreKey(components: [id.keyComponent] + components.map(\.keyComponent)), key, isUnique: isUnique)
  }

  /// Returns the key of an index entry from its item in an ``EntryList``.
  func entryKey(of item: StoreKey, _ key: StoreKey, isUnique: Bool) -> StoreKey {
    isUnique ? indexPrefix + item : indexPrefix + item + StoreKey(components: key.bytes)
  }

  /// Returns the beginning of the items of an index in an ``EntryList``.
  static func itemPrefix(_ id: Int) -> StoreKey { StoreKey(components: id) }

  /// Returns the item of an index entry in an ``EntryList``.
  func item(of entryKey: StoreKey, _ key: StoreKey, isUnique: Bool) -> StoreKey {
    let item = entryKey.bytes.dropFirst(indexPrefix.count)
    return StoreKey(bytes: isUnique ? item : item.dropLast(StoreKey(components: key.bytes).count))
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
  ///   - isUnique: A Boolean value that indicates whether the index is unique.
  /// - Throws: An error if the index entry is damaged.
  func key(of entry: StoreEntry<[UInt8]>, isUnique: Bool) throws -> StoreKey {
    guard !isUnique else { return try checked(entry.value) }
    let components = try StoreKey(bytes: entry.key.bytes.dropFirst(indexPrefix.count)).components()
    return try checked(components.last?.bytes ?? [])
  }

  private func checked(_ key: [UInt8]) throws -> StoreKey {
    guard !key.isEmpty, key.count + valueKeys.prefix.count <= StoreKey.maximumLength else { throw DamagedIndexEntry() }
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
