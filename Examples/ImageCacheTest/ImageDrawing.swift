/// Draws images if there are too few on the machine.
///
/// Each number has its own stripes, as a PNG file.
///
/// Formats: PNG (ISO/IEC 15948), with the pixels in a zlib stream (RFC 1950) of one stored block (RFC 1951), which is
/// not compressed.
enum ImageDrawing {
  /// The width and height of an image in pixels.
  ///
  /// More than 147 would not fit into one stored block.
  private static let side = 96

  /// Draws an image.
  ///
  /// - Parameter number: The number of the image. The first 16,777,216 images differ from each other.
  static func bytes(ofImage number: Int) -> [UInt8] {
    var header = bigEndian(UInt32(side)) + bigEndian(UInt32(side))
    header += [8, 2, 0, 0, 0]  // 8 bits for each of red, green and blue; not interlaced
    var bytes = Image.signature
    append("IHDR", header, to: &bytes)
    append("IDAT", stored(pixels(ofImage: number)), to: &bytes)
    append("IEND", [], to: &bytes)
    return bytes
  }

  /// Returns the rows of pixels, each after a byte that says that it is not filtered.
  private static func pixels(ofImage number: Int) -> [UInt8] {
    let color = bigEndian(UInt32(truncatingIfNeeded: number)).dropFirst()
    let opposite = color.map { ~$0 }
    var pixels: [UInt8] = []
    for row in 0..<side {
      pixels.append(0)
      for column in 0..<side {
        let isInStripe = ((row + column) / 8).isMultiple(of: 2)
        pixels += isInStripe ? Array(color) : opposite
      }
    }
    return pixels
  }

  /// Appends a chunk: its length, its type, its data, and the CRC of type and data.
  private static func append(_ type: String, _ data: [UInt8], to bytes: inout [UInt8]) {
    let checked = Array(type.utf8) + data
    bytes += bigEndian(UInt32(data.count)) + checked + bigEndian(Checksum.crc32(of: checked))
  }

  /// Returns a zlib stream with uncompressed data.
  private static func stored(_ data: [UInt8]) -> [UInt8] {
    let length = UInt16(data.count)
    var stream: [UInt8] = [0x78, 0x01]  // deflate, not compressed
    stream.append(0x01)  // the last block, stored
    for number in [length, ~length] {
      stream += [UInt8(truncatingIfNeeded: number), UInt8(number >> 8)]
    }
    return stream + data + bigEndian(Checksum.adler32(of: data))
  }

  private static func bigEndian(_ number: UInt32) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
  }
}
