/// How a key is written as JSON, where only text can be.
///
/// A key that is UTF-8 stands as that text. Any other stands as `keyBytes:` and its bytes in hexadecimal; so does a text
/// that itself begins with `keyBytes:`, so that no two keys are written alike.
package enum JSONKey {
  private static let mark = StoreKey("keyBytes:")

  /// Appends a key as a JSON string.
  package static func append(_ key: StoreKey, to bytes: inout [UInt8]) {
    if key.string != nil, !key.hasPrefix(mark) {
      key.withUnsafeBytes { JSONWriting.append(string: $0, to: &bytes) }
    } else {
      JSONWriting.append(string: mark.bytes + Hexadecimal.digits(of: key.bytes), to: &bytes)
    }
  }

  /// The key that some text stands for, or `nil` where bytes are announced and none follow.
  ///
  /// - Parameter text: The content of a JSON string, in UTF-8.
  package static func key(of text: [UInt8]) -> StoreKey? {
    let key = StoreKey(bytes: text)
    guard key.hasPrefix(mark) else { return key }
    return Hexadecimal.bytes(of: text.dropFirst(mark.count)).map { StoreKey(bytes: $0) }
  }
}
