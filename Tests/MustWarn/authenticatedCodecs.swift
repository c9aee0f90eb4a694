import Larder
import LarderCompression
import LarderExpiry

struct SealedCodec: AuthenticatedCodec {
  var name: String { "raw+sealed" }
  var format: CodecFormat { .binary }
  func encode(_ value: [UInt8], into bytes: inout [UInt8], context: ValueContext) {}
  func decode(_ bytes: RawSpan, context: ValueContext) -> [UInt8] { [] }
}

func wrapped(_ codec: SealedCodec) -> [any Codec<[UInt8]>] {
  [
    codec.checksummed(),  // warning: an authenticated codec detects every change itself
    codec.compressed(),  // warning: the bytes of an authenticated codec do not shrink
    codec.compressed(dictionaries: CompressionDictionaries()),  // warning: the bytes of an authenticated codec do not
  ]
}

func expiring(_ codec: some AuthenticatedCodec<[UInt8]>) -> any Codec<Expiring<[UInt8]>> {
  codec.expiring()  // warning: a deadline around an authenticated codec can be forged
}

func versioned(_ codec: SealedCodec) throws -> any Codec<[UInt8]> {
  try codec.versioned(1)  // warning: a version around an authenticated codec can be forged
}

func others(_ codec: RawCodec) throws -> any Codec<Expiring<[UInt8]>> {
  try codec.versioned(1).checksummed().compressed().compressed(dictionaries: CompressionDictionaries()).expiring()
}
