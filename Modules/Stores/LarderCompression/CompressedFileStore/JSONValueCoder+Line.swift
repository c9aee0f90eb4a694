#if Compression
import Larder

extension JSONValueCoder {
  /// The value in the line of a key.
  ///
  /// - Throws: ``StoreError`` with `corrupted`.
  func value(ofLine line: ArraySlice<UInt8>, forKey key: StoreKey, during operation: StoreOperation) throws -> Value {
    let text: ArraySlice<UInt8>
    do {
      text = try StoreLine.value(line, ofKey: key)
    } catch {
      throw StoreError(
        .corrupted, during: operation, store: store, key: key, message: "the line of the value cannot be read",
        underlying: error)
    }
    return try value(of: text, forKey: key, during: operation)
  }
}
#endif
