extension StoreKey {
  /// Creates a key from a text of any length, such as a URL.
  ///
  /// ```swift
  /// let key = StoreKey(shortening: url)
  /// ```
  ///
  /// If the UTF-8 of the text fits into the limit, the key is ``init(_:)-(String)``. Otherwise it is the beginning of the
  /// text, a tilde, and the SHA-256 of the whole text as 64 lower-case hexadecimal digits, together at most `limit`
  /// bytes. The beginning ends between two Unicode scalars, so the key is text, too. Keys of texts with a common
  /// beginning stay together, so a short `KeyRange.prefix` finds them.
  ///
  /// A text that itself ends in a tilde and 64 lower-case hexadecimal digits is always shortened, also if it is short.
  /// Therefore no short text has the key of a long text, and two different texts have the same key only if their SHA-256
  /// is the same. No such texts are known. If your program must not depend on that, keep the full text in the value and
  /// compare it after reading.
  ///
  /// The same text and limit give the same key in every version. Another limit gives a different key for a long text,
  /// so use one limit for all keys of a store.
  ///
  /// - Parameters:
  ///   - text: The text. It is not normalized. Empty text gives the empty key, which stores reject.
  ///   - limit: The maximum length of the key, in bytes. Defaults to ``maximumLength``. For a ``TypedView``, pass the
  ///     ``StoreInformation/maximumKeyLength`` of its ``DataStore/information``. A shortened key has at least 65 bytes.
  ///     With a lower limit, it is longer than the limit, and the store rejects it with ``StoreError/Code/invalidKey``.
  public init(shortening text: String, limit: Int = StoreKey.maximumLength) {
    var text = text
    self = text.withUTF8 { text in
      guard text.count > limit || StoreKey.endsLikeShortenedKey(text) else {
        return StoreKey(copying: UnsafeRawBufferPointer(text))
      }
      var length = min(text.count, max(limit, StoreKey.shortenedEndLength) - StoreKey.shortenedEndLength)
      // Not between two characters, because where those begin depends on the version of Unicode.
      while length > 0, length < text.count, UTF8.isContinuation(text[length]) { length -= 1 }
      let digest = KeyDigest.digest(of: UnsafeRawBufferPointer(text))
      return StoreKey(bytes: text[..<length] + [StoreKey.shorteningMark] + Hexadecimal.digits(of: digest))
    }
  }

  private static let shorteningMark = UInt8(ascii: "~")

  /// The number of bytes of the mark and the hexadecimal digest.
  private static let shortenedEndLength = 1 + 2 * KeyDigest.length

  private static func endsLikeShortenedKey(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    let end = text.suffix(shortenedEndLength)
    return end.count == shortenedEndLength && end.first == shorteningMark
      && end.dropFirst().allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }
}
