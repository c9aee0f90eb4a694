#if Compression
/// Finds lines in the text of blocks.
enum StoreText {
  /// The place behind the first line end from a place on, or `nil` where there is none.
  static func lineEnd(in text: [UInt8], from start: Int) -> Int? {
    text[start...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 }
  }
}
#endif
