import Larder

/// The list of the index entries of one key.
///
/// Every commit that adds or removes index entries of a key also changes its list. A write therefore finds the index
/// entries that it replaces without the old value, which it may not be able to decode. A key without index entries has no
/// list.
struct EntryList: Equatable, Sendable {
  /// The number of the index and the index key of each entry, in the encoding of key components, in order.
  let items: [StoreKey]

  init(_ items: some Sequence<StoreKey>) {
    self.items = items.sorted()
  }

  /// Reads a record, or returns `nil` if it is damaged.
  ///
  /// - Parameter record: The record, or `nil` for an empty list.
  init?(_ record: [UInt8]?) {
    var items: [StoreKey] = []
    var rest = (record ?? [])[...]
    while !rest.isEmpty {
      guard let high = rest.popFirst(), let low = rest.popFirst() else { return nil }
      let length = Int(high) << 8 | Int(low)
      guard length > 0, length <= rest.count else { return nil }
      items.append(StoreKey(bytes: rest.prefix(length)))
      rest = rest.dropFirst(length)
    }
    self.items = items
  }

  /// The record, or `nil` for an empty list.
  ///
  /// Each item follows its length, in two bytes with the most significant one first. An item is a part of a key of the
  /// base, so its length fits.
  var record: [UInt8]? {
    items.isEmpty
      ? nil
      : items.flatMap { [UInt8(truncatingIfNeeded: $0.count >> 8), UInt8(truncatingIfNeeded: $0.count)] + $0.bytes }
  }
}

extension IndexedStore {
  /// Returns the record of the list of some index entries of a key.
  func list(of entries: [StoreKey: ActiveIndex<Value>], of key: StoreKey) -> [UInt8]? {
    EntryList(entries.map { layout.item(of: $0, key, isUnique: $1.definition.isUnique) }).record
  }

  /// Returns the entries of a list that belong to some indexes, by their keys.
  ///
  /// - Throws: `StoreError` with `corrupted` if the list is damaged.
  func entries(
    in list: [UInt8]?, of key: StoreKey, _ indexes: [ActiveIndex<Value>], during operation: StoreOperation
  ) throws -> [StoreKey: ActiveIndex<Value>] {
    guard let entries = listedEntries(list, of: key, indexes) else {
      throw StoreError(
        .corrupted, during: operation, store: information.name, key: key,
        message: "the list of the index entries of a key is damaged; rebuild the indexes from scratch")
    }
    return entries
  }

  /// Returns the entries of a list that belong to some indexes, by their keys, or `nil` if the list is damaged.
  ///
  /// Entries of indexes that are no longer used are omitted.
  func listedEntries(
    _ list: [UInt8]?, of key: StoreKey, _ indexes: [ActiveIndex<Value>]
  ) -> [StoreKey: ActiveIndex<Value>]? {
    guard let items = EntryList(list)?.items else { return nil }
    var entries: [StoreKey: ActiveIndex<Value>] = [:]
    for item in items {
      guard let index = indexes.first(where: { item.hasPrefix($0.itemPrefix) }) else { continue }
      entries[layout.entryKey(of: item, key, isUnique: index.definition.isUnique)] = index
    }
    return entries
  }
}
