/// A key that is listed, and its value.
struct MapEntry {
  /// The text of a key that is text; the whole item otherwise.
  private let key: UnsafeRawPointer

  /// How many bytes that is; the complement of it where the key is not text.
  private let mark: Int

  /// The value.
  let value: UnsafeRawPointer

  init(key: UnsafeRawPointer, keyCount: Int, value: UnsafeRawPointer, isText: Bool) {
    self.key = key
    self.value = value
    mark = isText ? keyCount : ~keyCount
  }

  /// Whether the key is text.
  var isText: Bool { mark >= 0 }

  var keyBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: key, count: isText ? mark : ~mark) }

  func hasSameKey(as other: MapEntry) -> Bool {
    mark == other.mark && compare(key, other.key, count: keyBytes.count) == 0
  }

  /// Whether the key is a text.
  func has(_ text: UnsafeRawBufferPointer) -> Bool {
    guard mark == text.count else { return false }
    guard let address = text.baseAddress else { return true }
    return compare(key, address, count: mark) == 0
  }

  var hash: Int {
    var hasher = Hasher()
    hasher.combine(bytes: keyBytes)
    hasher.combine(isText)
    return hasher.finalize()
  }
}
