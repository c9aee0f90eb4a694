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

func others(_ codec: RawCodec) -> any Codec<Expiring<[UInt8]>> {
  codec.checksummed().compressed().compressed(dictionaries: CompressionDictionaries()).expiring()
}
