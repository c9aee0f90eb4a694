import Larder
import LarderExpiry

// error: a typed view needs a store of bytes
func open() {
  _ = MemoryStore<String>().typed(Int.self, prefix: "numbers/", codec: .json())
}
