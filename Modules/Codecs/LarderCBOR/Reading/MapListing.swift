/// The keys of maps that could not be read in the order of their fields.
@usableFromInline
final class MapListing {
  /// Up to so many keys are looked through one by one.
  private static let fewCount = 12

  private(set) var maps: [ListedMap] = []
  private var entries: [MapEntry] = []

  /// The text of keys that come in chunks.
  private var ownKeys: [UnsafeMutableRawBufferPointer] = []

  init() {}

  deinit {
    for key in ownKeys { key.deallocate() }
  }

  /// Keeps the text of a key.
  func own(_ key: String) -> UnsafeRawBufferPointer {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(key.utf8.count, 1), alignment: 1)
    copy.copyBytes(from: key.utf8)
    ownKeys.append(copy)
    return UnsafeRawBufferPointer(rebasing: copy[..<key.utf8.count])
  }

  /// Begins the list of another map; gives its number.
  func open(at start: UnsafeRawPointer) -> Int {
    maps.append(ListedMap(firstEntry: entries.count, end: start))
    return maps.count - 1
  }

  /// Lists another key of the last map.
  ///
  /// - Returns: The value of a key that has come twice, if one is noticed.
  func append(_ entry: MapEntry) -> UnsafeRawPointer? {
    let index = maps.count - 1
    entries.append(entry)
    maps[index].entryCount += 1
    let count = maps[index].entryCount
    // Not only at the end, so that a key that comes again and again does not fill the memory.
    return count > MapListing.fewCount && count.nonzeroBitCount == 1 ? prepare(index) : nil
  }

  /// Ends the list of the last map.
  ///
  /// - Parameters:
  ///   - end: What follows its last value.
  ///   - likely: Which key is likely to be asked for next.
  /// - Returns: The value of a key that comes twice, if there is one.
  func close(end: UnsafeRawPointer, likely: Int) -> UnsafeRawPointer? {
    let index = maps.count - 1
    maps[index].end = end
    maps[index].likely = likely
    return prepare(index)
  }

  /// Forgets a map and those that were listed after it.
  func remove(from map: Int) {
    guard map < maps.count else { return }
    entries.removeSubrange(maps[map].firstEntry...)
    maps.removeSubrange(map...)
  }

  /// Readies the keys of a map; gives the value of one that comes twice, if there is one.
  private func prepare(_ index: Int) -> UnsafeRawPointer? {
    let (first, count) = (maps[index].firstEntry, maps[index].entryCount)
    guard count > MapListing.fewCount else {
      for index in first..<first + count {
        for other in first..<index where entries[index].hasSameKey(as: entries[other]) { return entries[index].value }
      }
      return nil
    }
    let slotCount = 1 << (Int.bitWidth - (count * 2 - 1).leadingZeroBitCount)
    var slots = [Int32](repeating: -1, count: slotCount)
    for index in 0..<count {
      let entry = entries[first + index]
      var slot = entry.hash & (slotCount - 1)
      while slots[slot] >= 0 {
        if entries[first + Int(slots[slot])].hasSameKey(as: entry) { return entry.value }
        slot = (slot + 1) & (slotCount - 1)
      }
      slots[slot] = Int32(truncatingIfNeeded: index)
    }
    maps[index].slots = slots
    return nil
  }

  /// Finds the value of a key that is text.
  func value(of key: UnsafeRawBufferPointer, in index: Int) -> UnsafeRawPointer? {
    let map = maps[index]
    if map.likely < map.entryCount, entries[map.firstEntry + map.likely].has(key) {
      maps[index].likely += 1
      return entries[map.firstEntry + map.likely].value
    }
    guard let place = place(of: key, in: map) else { return nil }
    maps[index].likely = place + 1
    return entries[map.firstEntry + place].value
  }

  private func place(of key: UnsafeRawBufferPointer, in map: ListedMap) -> Int? {
    if map.slots.isEmpty {
      return (0..<map.entryCount).first { entries[map.firstEntry + $0].has(key) }
    }
    let sought = MapEntry(key: key.baseAddress ?? map.end, keyCount: key.count, value: map.end, isText: true)
    var slot = sought.hash & (map.slots.count - 1)
    while map.slots[slot] >= 0 {
      let place = Int(map.slots[slot])
      if entries[map.firstEntry + place].has(key) { return place }
      slot = (slot + 1) & (map.slots.count - 1)
    }
    return nil
  }

  /// The keys of a map; `nil` where one is neither text in UTF-8 nor a number.
  func textKeys(of index: Int) -> [String]? {
    let map = maps[index]
    var keys: [String] = []
    for entry in entries[map.firstEntry..<map.firstEntry + map.entryCount] {
      guard entry.isText, let key = String(validating: entry.keyBytes, as: UTF8.self) else { return nil }
      keys.append(key)
    }
    return keys
  }
}
