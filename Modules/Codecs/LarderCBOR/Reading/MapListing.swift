/// The keys of maps that could not be read in order.
final class MapListing {
  /// The maximum number of keys that are searched linearly.
  private static let fewCount = 12

  private(set) var maps: [ListedMap] = []
  private var entries: [MapEntry] = []

  /// Copies of keys whose text is not contiguous in the input: chunked text, and the digits of integers.
  private var ownKeys: [UnsafeMutableRawBufferPointer] = []

  init() {}

  deinit {
    for key in ownKeys { key.deallocate() }
  }

  /// Keeps a copy of a key's text.
  func own(_ key: String) -> UnsafeRawBufferPointer {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(key.utf8.count, 1), alignment: 1)
    copy.copyBytes(from: key.utf8)
    ownKeys.append(copy)
    return UnsafeRawBufferPointer(rebasing: copy[..<key.utf8.count])
  }

  /// Starts the list of another map, and returns the index of the map.
  func open(at start: UnsafeRawPointer) -> Int {
    maps.append(ListedMap(firstEntry: entries.count, end: start))
    return maps.count - 1
  }

  /// Adds a key to the last map.
  ///
  /// - Returns: The value of the key if the map already has the key.
  func append(_ entry: MapEntry) -> UnsafeRawPointer? {
    let index = maps.count - 1
    let first = maps[index].firstEntry
    let isFound = maps[index].entryCount < MapListing.fewCount && entries[first...].contains(entry)
    entries.append(entry)
    maps[index].entryCount += 1
    let count = maps[index].entryCount
    guard count > MapListing.fewCount else { return isFound ? entry.value : nil }
    for place in maps[index].places.count..<count { maps[index].places[entries[first + place]] = place }
    return maps[index].places.count < count ? entry.value : nil
  }

  /// Completes the list of the last map.
  ///
  /// - Parameters:
  ///   - end: The address after the last value.
  ///   - likely: The index of the key that is likely to be requested next.
  func close(end: UnsafeRawPointer, likely: Int) {
    maps[maps.count - 1].end = end
    maps[maps.count - 1].likely = likely
  }

  /// Removes a map and all maps that were listed after it.
  func remove(from map: Int) {
    guard map < maps.count else { return }
    entries.removeSubrange(maps[map].firstEntry...)
    maps.removeSubrange(map...)
  }

  /// Returns the value of a text key.
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
    if map.places.isEmpty {
      return (0..<map.entryCount).first { entries[map.firstEntry + $0].has(key) }
    }
    return map.places[MapEntry(key: key.baseAddress ?? map.end, keyCount: key.count, value: map.end, isText: true)]
  }

  /// Returns the keys of a map, or `nil` if a key is neither text in UTF-8 nor a number.
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

/// A map whose keys are listed.
struct ListedMap {
  /// The index of its first key in the list.
  let firstEntry: Int

  /// The number of keys.
  var entryCount = 0

  /// The index of the key that is likely to be requested next.
  var likely = 0

  /// The address after the last value.
  var end: UnsafeRawPointer

  /// The index of each key, if there are many.
  var places: [MapEntry: Int] = [:]
}

/// A listed key and its value.
///
/// Two entries are equal if their keys are.
struct MapEntry: Hashable {
  /// The text of a text key, or the whole item of any other key.
  private let key: UnsafeRawPointer

  /// The number of bytes of the key, complemented if the key is not text.
  private let mark: Int

  let value: UnsafeRawPointer

  init(key: UnsafeRawPointer, keyCount: Int, value: UnsafeRawPointer, isText: Bool) {
    self.key = key
    self.value = value
    mark = isText ? keyCount : ~keyCount
  }

  var isText: Bool { mark >= 0 }

  var keyBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: key, count: isText ? mark : ~mark) }

  static func == (first: MapEntry, second: MapEntry) -> Bool {
    first.mark == second.mark && compare(first.key, second.key, count: first.keyBytes.count) == 0
  }

  /// Returns whether the key is the given text.
  func has(_ text: UnsafeRawBufferPointer) -> Bool {
    guard mark == text.count else { return false }
    guard let address = text.baseAddress else { return true }
    return compare(key, address, count: mark) == 0
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(bytes: keyBytes)
    hasher.combine(isText)
  }
}
