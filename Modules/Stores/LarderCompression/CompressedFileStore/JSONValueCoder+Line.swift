#if Compression
import Larder

extension JSONValueCoder {
  /// The text of the value in the line of a key.
  ///
  /// - Throws: ``StoreError`` with `corrupted`.
  func text(
    ofLine line: ArraySlice<UInt8>, forKey key: StoreKey, during operation: StoreOperation
  ) throws -> ArraySlice<UInt8> {
    do {
      return try StoreLine.value(line, ofKey: key)
    } catch {
      throw StoreError(
        .corrupted, during: operation, store: store, key: key, message: "the line of the value cannot be read",
        underlying: error)
    }
  }
}
#endif
