#if Compression
public import Larder

/// A value was compressed with a dictionary that its codec was not given.
///
/// The value is not lost: it is read again as soon as the codec has the dictionary.
public struct MissingDictionaryError: ValueFreeError, Hashable {
  /// The dictionary that it takes.
  public let id: CompressionDictionary.ID

  /// The dictionaries that the codec has, oldest first.
  public let availableIDs: [CompressionDictionary.ID]

  /// Names what is missing.
  init(id: CompressionDictionary.ID, availableIDs: [CompressionDictionary.ID]) {
    self.id = id
    self.availableIDs = availableIDs
  }
}

extension MissingDictionaryError: CustomStringConvertible {
  /// Which dictionary is missing, and which are there.
  public var description: String {
    let available = availableIDs.map(\.description).joined(separator: ", ")
    return
      "the value was compressed with the dictionary \(id), and \(available.isEmpty ? "none" : "only \(available)") "
      + "is there; open the store with all dictionaries that it was written with"
  }
}
#endif
