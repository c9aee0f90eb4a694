#if Compression
public import Larder

extension StoreOperation {
  /// ``CompressionDictionary/train(on:size:)``.
  public static let trainDictionary = StoreOperation(rawValue: "trainDictionary")
  /// ``CompressionDictionaries/add(_:)`` and ``CompressionDictionaries/add(_:toFile:in:)``.
  public static let addDictionary = StoreOperation(rawValue: "addDictionary")
}
#endif
