#if Compression
public import Larder

/// Bytes that occur in many values: what a value has in common with them is compressed away, though it stands in the
/// value but once.
///
/// Small records that are much alike gain most. A value cannot be read again without the dictionary that it was
/// compressed with, so keep every one that was ever used: ``CompressionDictionaries`` does.
public struct CompressionDictionary: Sendable, Hashable {
  /// The most bytes that a dictionary may have: as far as deflate looks back.
  public static let maximumSize = 32_768

  /// The bytes, the most useful ones last.
  public let bytes: [UInt8]

  /// By which compressed values name the dictionary.
  public let id: ID

  /// The CRC-32 of the bytes.
  let checksum: UInt32

  /// Takes the bytes of a dictionary, such as one that was trained and kept, or made by hand.
  ///
  /// - Parameter bytes: What many values have in common, the most useful last; from 1 to ``maximumSize`` bytes.
  /// - Throws: `StoreError` with code `invalidArgument` where there are none, or too many.
  public init(_ bytes: [UInt8]) throws(StoreError) {
    guard 1...Self.maximumSize ~= bytes.count else {
      throw StoreError(
        .invalidArgument, during: .addDictionary,
        message: "a compression dictionary has from 1 to \(Self.maximumSize) bytes, not \(bytes.count)")
    }
    self.init(checked: bytes)
  }

  private init(checked bytes: [UInt8]) {
    self.bytes = bytes
    checksum = bytes.withUnsafeBytes { CRC32.checksum(of: $0) }
    id = ID(rawValue: UInt16(truncatingIfNeeded: checksum))
  }

  /// Makes a dictionary of what sample values have in common.
  ///
  /// Give it a few thousand values as the store has them, encoded by the codec that is to be compressed: about a hundred
  /// times the size of the dictionary does. It takes about half a second for each 10 MB, on the calling thread. The
  /// same samples always give the same dictionary.
  ///
  /// It chooses as COVER does (Liao, Petri, Moffat and Wirth: "Effective Construction of Relative Lempel-Ziv
  /// Dictionaries", WWW 2016): the samples are divided into as many parts as the dictionary has room for, and of each
  /// the segment is taken whose sequences of 8 bytes occur in most samples, each counted for one segment only. Four lengths
  /// of segments are tried, and that one wins with which every fourth sample, left out at the trial, becomes smallest.
  ///
  /// - Parameters:
  ///   - samples: The bytes of values.
  ///   - size: The most bytes that the dictionary shall have, from 64 to ``maximumSize``; 16,384 unless given. A larger one
  ///     makes small records smaller, and compressing them slower.
  /// - Throws: `StoreError` with code `invalidArgument` where the size is outside its range, or the samples have nothing in
  ///   common; ``ZlibError`` where there is no memory.
  public static func train(on samples: [[UInt8]], size: Int = 16_384) throws -> CompressionDictionary {
    guard 64...maximumSize ~= size else {
      throw StoreError(
        .invalidArgument, during: .trainDictionary,
        message: "a dictionary is trained to a size from 64 to \(maximumSize) bytes, not \(size)")
    }
    let bytes = try DictionaryTraining.dictionary(for: samples, size: size)
    guard !bytes.isEmpty else {
      throw StoreError(
        .invalidArgument, during: .trainDictionary,
        message: "no 8 bytes occur in two of the \(samples.count) samples; give more of them")
    }
    return CompressionDictionary(checked: bytes)
  }

  /// Makes a dictionary of what sample values have in common, as a codec writes them.
  ///
  /// - Parameters:
  ///   - samples: The values.
  ///   - codec: The codec that is to be compressed.
  ///   - size: The most bytes that the dictionary shall have; see ``train(on:size:)``.
  /// - Throws: What the codec throws; as ``train(on:size:)``.
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
  /// Names a dictionary: the lower half of the CRC-32 of its bytes.
  public struct ID: RawRepresentable, Sendable, Hashable {
    /// The number.
    public let rawValue: UInt16

    /// Makes an identifier of a number.
    ///
    /// - Parameter rawValue: The number.
    public init(rawValue: UInt16) {
      self.rawValue = rawValue
    }
  }
}

extension CompressionDictionary.ID: CustomStringConvertible {
  /// The number, as four hexadecimal digits.
  public var description: String { Hexadecimal.text(of: [UInt8(rawValue >> 8), UInt8(rawValue & 0xFF)]) }
}

extension CompressionDictionary: CustomStringConvertible {
  /// The identifier and the size; the bytes are made of values.
  public var description: String { "CompressionDictionary(\(id), \(bytes.count) bytes)" }
}
#endif
