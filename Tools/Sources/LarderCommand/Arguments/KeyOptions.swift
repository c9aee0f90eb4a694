import ArgumentParser
import Larder

/// How keys are written on the command line.
struct KeyOptions: ParsableArguments {
  @Flag(name: .customLong("key-hex"), help: "Take keys as hexadecimal digits, like 80c0; for keys that are not UTF-8.")
  var areHexadecimal = false

  /// The key of an entry.
  ///
  /// - Parameter text: What stands on the command line.
  /// - Throws: `ValidationError` where it is no key.
  func key(_ text: String) throws -> StoreKey {
    let key = try bound(text)
    guard !key.isEmpty else { throw ValidationError("A key has at least one byte") }
    guard key.count <= StoreKey.maximumLength else {
      throw ValidationError("A key has at most \(StoreKey.maximumLength) bytes, this one has \(key.count)")
    }
    return key
  }

  /// A prefix or the bound of a range, which may be empty or longer than a key.
  ///
  /// - Parameter text: What stands on the command line.
  /// - Throws: `ValidationError` where it is not hexadecimal but should be.
  func bound(_ text: String) throws -> StoreKey {
    guard areHexadecimal else { return StoreKey(text) }
    guard let bytes = HexadecimalText.bytes(of: text) else {
      throw ValidationError("With --key-hex a key is pairs of hexadecimal digits, like 80c0; '\(text)' is not")
    }
    return StoreKey(bytes: bytes)
  }
}
