import Larder
import LarderExpiry

// error: the values of this store have no deadlines
func open() -> some DataStore<Int> {
  MemoryStore<Int>().expiring(.after(.seconds(60)))
}
