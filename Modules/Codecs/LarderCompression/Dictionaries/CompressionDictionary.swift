#if Compression
public import Larder

/// Bytes that occur in many values.
///
/// The parts that a value shares with them are compressed away, even if they occur in the value only once.
///
/// Small, similar records gain most. A value cannot be read without the dictionary that it was compressed with, so you
/// must keep every dictionary that was ever used. ``CompressionDictionaries`` does this for you.
///
/// ```swift
/// let file = CompressionDictionaries.path(besideStoreAt: folder + "/users")
/// let dictionary = try CompressionDictionary.train(on: samples, codec: .cbor(User.self))
/// let dictionaries = try await CompressionDictionaries.add(dictionary, toFile: file)
/// let users = try await LMDBStore<User>(
///   path: folder + "/users", codec: .cbor(User.self).compressed(dictionaries: dictionaries))
/// ```
public struct CompressionDictionary: Sendable, Hashable {
  /// The maximum size of a dictionary, in bytes: the distance that deflate can look back.
  public static let maximumSize = 32_768

  /// The bytes of the dictionary, the most useful ones last.
  public let bytes: [UInt8]

  /// The identifier by which compressed values name the dictionary.
  public let id: ID

  /// The CRC-32 of the bytes.
  let checksum: UInt32

  /// Creates a dictionary from bytes, such as those of a trained dictionary that was saved or one made by hand.
  ///
  /// - Parameter bytes: Bytes that many values have in common, the most useful last. There must be from 1 to
  ///   ``maximumSize`` of them.
  /// - Throws: `StoreError` with `invalidArgument` if there are too few or too many bytes.
  public init(_ bytes: [UInt8]) throws(StoreError) {
    guard 1...Self.maximumSize ~= bytes.count else {
      throw StoreError(
        .invalidArgument, during: .addDictionary,
        message: "a compression dictionary must have from 1 to \(Self.maximumSize) bytes, not \(bytes.count)")
    }
    self.init(checked: bytes)
  }

  private init(checked bytes: [UInt8]) {
    self.bytes = bytes
    checksum = bytes.withUnsafeBytes { ZlibCRC32.checksum(of: $0) }
    id = ID(rawValue: UInt16(truncatingIfNeeded: checksum))
  }

  /// Creates a dictionary from the bytes that sample values have in common.
  ///
  /// Pass a few thousand values as the store has them, encoded by the codec that is to be compressed. About a hundred
  /// times the size of the dictionary is enough. Training takes less than a second for each 10 MB, on the calling
  /// thread. The same samples always yield the same dictionary.
  ///
  /// The algorithm follows COVER (Liao, Petri, Moffat and Wirth: "Effective Construction of Relative Lempel-Ziv
  /// Dictionaries", WWW 2016). The samples are divided into as many parts as the dictionary has room for. Each part
  /// contributes the segment whose sequences of 8 bytes occur in most samples, and each sequence is counted for one
  /// segment only.
  ///
  /// ```swift
  /// let dictionary = try CompressionDictionary.train(on: documents, size: 4096)
  /// ```
  ///
  /// - Parameters:
  ///   - samples: The bytes of sample values.
  ///   - size: The maximum size of the dictionary, in bytes, from 64 to ``maximumSize``. Defaults to 16,384. A larger
  ///     dictionary makes small records smaller, but compressing them slower.
  /// - Throws: `StoreError` with `invalidArgument` if the size is out of range or the samples have nothing in common.
  public static func train(on samples: [[UInt8]], size: Int = 16_384) throws -> CompressionDictionary {
    guard 64...maximumSize ~= size else {
      throw StoreError(
        .invalidArgument, during: .trainDictionary,
        message: "size must be from 64 to \(maximumSize) bytes, not \(size)")
    }
    let bytes = DictionaryTraining(samples).dictionary(size: size)
    guard !bytes.isEmpty else {
      throw StoreError(
        .invalidArgument, during: .trainDictionary,
        message: "no sequence of 8 bytes occurs in two of the \(samples.count) samples; pass more samples")
    }
    return CompressionDictionary(checked: bytes)
  }

  /// Creates a dictionary from the bytes that sample values have in common when a codec encodes them.
  ///
  /// - Parameters:
  ///   - samples: The sample values.
  ///   - codec: The codec that is to be compressed.
  ///   - size: The maximum size of the dictionary, in bytes. Defaults to 16,384; see ``train(on:size:)``.
  /// - Throws: Any error of the codec; the errors of ``train(on:size:)``.
  public static func train<Value>(
    on samples: some Sequence<Value>, codec: some Codec<Value>, size: Int = 16_384
  ) throws -> CompressionDictionary {
    try train(
      on: samples.map { value in
        var bytes: [UInt8] = []
        try codec.encode(value, into: &bytes)
        return bytes
      },
      size: size)
  }
}

extension CompressionDictionary {
  /// The identifier of a dictionary: the lower half of the CRC-32 of its bytes.
  public struct ID: RawRepresentable, Sendable, Hashable {
    /// The identifier as a number.
    public let rawValue: UInt16

    /// Creates an identifier from a number.
    ///
    /// - Parameter rawValue: The identifier as a number.
    public init(rawValue: UInt16) {
      self.rawValue = rawValue
    }
  }
}

extension CompressionDictionary.ID: CustomStringConvertible {
  /// The identifier as four hexadecimal digits.
  public var description: String { Hexadecimal.text(of: rawValue) }
}

extension CompressionDictionary: CustomStringConvertible {
  /// The identifier and the size, without the bytes, which are taken from values.
  public var description: String { "CompressionDictionary(\(id), \(bytes.count) bytes)" }
}

extension StoreOperation {
  /// The operation of ``CompressionDictionary/train(on:size:)``.
  public static let trainDictionary = StoreOperation(rawValue: "trainDictionary")
  /// The operation of ``CompressionDictionaries/add(_:)`` and ``CompressionDictionaries/add(_:toFile:in:)``.
  public static let addDictionary = StoreOperation(rawValue: "addDictionary")
}
#endif
