package dev.repertoire.client;

import com.google.protobuf.ListValue;
import com.google.protobuf.NullValue;
import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Objects of JSON as maps, and as the contract has them. A Struct knows no integers. */
public final class Structs {
  private Structs() {}

  /** An object of null, booleans, numbers, texts, lists and maps. */
  public static Struct of(Map<String, ?> map) {
    Struct.Builder struct = Struct.newBuilder();
    map.forEach((name, value) -> struct.putFields(name, value(name, value)));
    return struct.build();
  }

  /** The same back: numbers are doubles. */
  public static Map<String, Object> map(Struct struct) {
    Map<String, Object> map = new LinkedHashMap<>();
    struct.getFieldsMap().forEach((name, value) -> map.put(name, object(value)));
    return map;
  }

  private static Value value(String name, Object object) {
    Value.Builder value = Value.newBuilder();
    if (object == null) {
      return value.setNullValue(NullValue.NULL_VALUE).build();
    } else if (object instanceof Boolean truth) {
      return value.setBoolValue(truth).build();
    } else if (object instanceof Number number) {
      return value.setNumberValue(number.doubleValue()).build();
    } else if (object instanceof CharSequence text) {
      return value.setStringValue(text.toString()).build();
    } else if (object instanceof Struct struct) {
      return value.setStructValue(struct).build();
    } else if (object instanceof Map<?, ?> map) {
      Struct.Builder struct = Struct.newBuilder();
      map.forEach((key, inner) -> struct.putFields(String.valueOf(key), value(name, inner)));
      return value.setStructValue(struct).build();
    } else if (object instanceof Iterable<?> items) {
      ListValue.Builder list = ListValue.newBuilder();
      items.forEach(item -> list.addValues(value(name, item)));
      return value.setListValue(list).build();
    }
    throw RepertoireException.invalid(
        "`" + name + "` is of " + object.getClass() + ", which JSON does not have",
        "Pass null, a boolean, a number, a text, a list, or a map");
  }

  private static Object object(Value value) {
    switch (value.getKindCase()) {
      case BOOL_VALUE:
        return value.getBoolValue();
      case NUMBER_VALUE:
        return value.getNumberValue();
      case STRING_VALUE:
        return value.getStringValue();
      case STRUCT_VALUE:
        return map(value.getStructValue());
      case LIST_VALUE:
        List<Object> list = new ArrayList<>();
        value.getListValue().getValuesList().forEach(item -> list.add(object(item)));
        return list;
      default:
        return null;
    }
  }
}
