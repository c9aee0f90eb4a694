package import ArgumentParser
package import Larder

/// The notation of keys on the command line.
package struct KeyOptions: ParsableArguments {
  @Flag(
    name: .customLong("key-hex"), help: "Read keys as hexadecimal digits, such as 80c0. For keys that are not UTF-8.")
  package var areHexadecimal = false

  package init() {}

  /// Returns the key that an argument stands for.
  ///
  /// - Parameter text: The argument.
  /// - Throws: `ValidationError` if the argument is not a key.
  package func key(_ text: String) throws -> StoreKey {
    let key = try bound(text)
    guard !key.isEmpty else { throw ValidationError("a key must have at least 1 byte") }
    guard key.count <= StoreKey.maximumLength else {
      throw ValidationError("a key must have at most \(StoreKey.maximumLength) bytes, not \(key.count)")
    }
    return key
  }

  /// Returns the prefix or the bound of a range that an argument stands for, which may be empty or longer than a key.
  ///
  /// - Parameter text: The argument.
  /// - Throws: `ValidationError` if keys are hexadecimal and the argument is not.
  package func bound(_ text: String) throws -> StoreKey {
    guard areHexadecimal else { return StoreKey(text) }
    if let key = StoreKey(hexadecimal: text) { return key }
    throw ValidationError(
      "invalid key '\(text)': with --key-hex, expected pairs of hexadecimal digits, such as 80c0")
  }
}

/// The range of keys that a verb works on: the keys within all the given bounds.
package struct RangeOptions: ParsableArguments {
  @Option(help: "Only keys that begin with this prefix.") package var prefix: String?
  @Option(help: ArgumentHelp("Only this key and the keys after it.", valueName: "key")) var from: String?
  @Option(help: ArgumentHelp("Only keys before this key.", valueName: "key")) var to: String?
  @OptionGroup package var keys: KeyOptions

  package init() {}

  package func validate() throws {
    for (name, bound) in [("--prefix", prefix), ("--from", from), ("--to", to)] where bound == "" {
      // An unset shell variable gives an empty bound, and most likely does not mean all keys.
      throw ValidationError("\(name) is empty; omit it to set no such bound")
    }
    _ = try range()
  }

  /// Returns the range of keys.
  ///
  /// - Throws: `ValidationError` if keys are hexadecimal and a bound is not.
  package func range() throws -> KeyRange {
    let prefixed = try prefix.map { KeyRange.prefix(try keys.bound($0)) } ?? .all
    let lowerBound = try from.map { max(prefixed.lowerBound, try keys.bound($0)) } ?? prefixed.lowerBound
    let upperBounds = try [prefixed.upperBound, to.map { try keys.bound($0) }].compactMap(\.self)
    return KeyRange(from: lowerBound, upTo: upperBounds.min())
  }
}
